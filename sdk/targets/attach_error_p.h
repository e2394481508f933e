// Explains why a process cannot be attached to: one sentence, and a remedy.
#pragma once

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {

TargetError no_such_process(pid_t process);
/// Finds the obstacles that are known before the attempt. None: attaching may succeed.
std::optional<TargetError> why_not_attached(const ProcessFolder& folder, const ProcessStatus& status);
/// Explains `failure`, the errno that PTRACE_SEIZE failed with.
TargetError refused_attach(const ProcessFolder& folder, const ProcessStatus& status, int failure);
/// Reports another architecture of a core file or of a process's program. `machine` is its ELF e_machine.
TargetError other_architecture(const std::string& whose, unsigned machine, bool is_64);
/// Reports an architecture without a table, or with another word size than its table's.
TargetError no_table(const std::string& whose, unsigned machine, bool is_64);

}  // namespace jitunwind

// Why a process cannot be attached to: one sentence, and what to do about it.
#pragma once

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {

TargetError no_such_process(pid_t process);
/// What can be told before it is tried. None: it may be.
std::optional<TargetError> why_not_attached(const ProcessFolder& folder, const ProcessStatus& status);
/// After PTRACE_SEIZE has failed with `failure`.
TargetError refused_attach(const ProcessFolder& folder, const ProcessStatus& status, int failure);
/// Of the file that a process runs, or of a core file: `machine` is its ELF e_machine.
TargetError other_architecture(const std::string& whose, unsigned machine, bool is_64);
/// Of that architecture there is no table, or the table's words have another size.
TargetError no_table(const std::string& whose, unsigned machine, bool is_64);

}  // namespace jitunwind

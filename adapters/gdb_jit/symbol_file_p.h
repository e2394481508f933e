// An ELF file for procedures: a symbol and call frame information for each, without code.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The data that a debugger gets for one procedure. All of it is copied; the descriptor is not read later.
struct DebuggedProcedure {
  RegistrationKey key{};
  const unw_dyn_info_t* info = nullptr;  ///< not to be read
  AddrRange code{};
  std::string name;            ///< any bytes but NUL; empty: none
  std::vector<std::byte> cfi;  ///< CIEs and FDEs, none of which ends the section
};

struct FileProcedure {
  const DebuggedProcedure* procedure = nullptr;
  /// The procedure is in the section of the preceding one, which then extends over the gap between them. Debuggers look
  /// for a procedure in the file with a section at its address, so that no foreign code may be in the gap. They also
  /// sort the sections of all files whenever a file is added or removed, so that few sections are better.
  bool joined = false;
};

/// The file of these procedures, in ascending order. Linux/ELF with 64 or 32 bits, as the CPU requires (System V ABI,
/// "Object Files"). docs/debuggers.md "What is in the files" lists the parts that debuggers need. Throws
/// std::bad_alloc.
std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures);

}  // namespace jitunwind

// Procedures as an ELF file: a symbol and call frame information for each, no code.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// What a debugger is to know of one procedure. Copies: nothing of the descriptor.
struct DebuggedProcedure {
  RegistrationKey key{};
  const unw_dyn_info_t* info = nullptr;  ///< not to be read
  AddrRange code{};
  std::string name;            ///< any bytes but NUL; empty: none
  std::vector<std::byte> cfi;  ///< CIEs and FDEs, none ends the section
};

struct FileProcedure {
  const DebuggedProcedure* procedure = nullptr;
  /// In the section of the one before it, which then reaches over what is between them. Debuggers look for a procedure
  /// in the file that has a section at its address, so no code of others may be there; but they sort all sections of
  /// all files whenever a file comes or goes, so there should be few.
  bool joined = false;
};

/// The file of these procedures, in ascending order. Linux/ELF, of 64 or 32 bits as the CPU has (System V ABI, "Object
/// Files"); what debuggers need of it: docs/debuggers.md "What is in the files". Throws std::bad_alloc.
std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures);

}  // namespace jitunwind

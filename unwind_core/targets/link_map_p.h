// The objects of a target according to its dynamic linker, for targets whose mappings have no names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

class CoreMemory;

/// The program according to the auxiliary vector: getauxval(3). 0: there is no such value.
struct ProgramStart {
  Addr headers = 0;                ///< AT_PHDR
  std::uint64_t header_count = 0;  ///< AT_PHNUM
  Addr path = 0;                   ///< AT_EXECFN
  /// The program's file, if it is known: it serves for parts that the memory lacks. Null: it is not known.
  const ElfImage* file = nullptr;
  std::string file_path{};  ///< name of the file if the memory has none
};

/// The segments of all objects whose first page is in `memory`, with their files' paths, by link maps (<link.h>) from
/// the program's DT_DEBUG on. A static program has its own segments alone. They are readable; the caller sets other
/// permissions. Bounded for any content of the memory. `core` tells word size and byte order of the target.
std::vector<Mapping> mappings_by_link_map(const CoreMemory& memory, const ElfImage& core, const ProgramStart& program);

}  // namespace jitunwind

// What the dynamic linker of a target says of its objects, for targets whose mappings have no names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

/// What the auxiliary vector says of the program: getauxval(3). 0: it does not.
struct ProgramStart {
  Addr headers = 0;                ///< AT_PHDR
  std::uint64_t header_count = 0;  ///< AT_PHNUM
  Addr path = 0;                   ///< AT_EXECFN
  /// The program's file, where somebody knows it: for what of it is not in the memory. Null: nobody does.
  const ElfImage* file = nullptr;
  std::string file_path{};  ///< what it is called where the memory has no name of it
};

/// The segments of all objects whose first page `memory` has, with their files' paths, by link maps (<link.h>) from the
/// program's DT_DEBUG on. Of a static program its own. Readable; other permissions are for others to say. Bounded,
/// whatever the memory holds. Of the target `core` tells word size and byte order.
std::vector<Mapping> mappings_by_link_map(const Memory& memory, const ElfImage& core, const ProgramStart& program);

}  // namespace jitunwind

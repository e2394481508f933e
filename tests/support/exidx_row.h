// The row that .ARM.exidx has for an address, as text.
#pragma once

#include <string>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/arm_exidx.h"

namespace jitunwind::test {

/// Returns the row, or "no row", or "error " and the error's name.
inline std::string exidx_row(const SectionBytes& exidx, const Memory& memory, Addr pc, const Arch& arch = arch::arm) {
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  MemoryWindow window;
  Lookup lookup(space, CodeAddress::interrupted(pc), window);
  FrameRow row;
  const Found found = find_exidx_row(exidx, pc, lookup, row);
  if (!found) return std::string("error ") + error_name(found.error().code);
  return *found ? to_text(row, arch) : "no row";
}

}  // namespace jitunwind::test

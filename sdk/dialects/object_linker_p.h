// What a debugger does with a file that was not linked (ET_REL), whose sections say by their addresses where they are.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/image/elf_internal.h"

namespace jitunwind {

/// Changes `file`, which `image` was read of: values of symbols become addresses, and in the sections of these names
/// words that are to be relocated (gABI, chapter 4 "Symbol Table", "Relocation"). Of those what this file does not
/// define, or Arch::relocations does not have, stays as it is. At most 2^20 relocations.
void link_object(const ElfImage& image, std::span<std::byte> file, std::span<const std::string_view> sections,
                 const Arch& arch) noexcept;

}  // namespace jitunwind

// Links a file that was not linked (ET_REL) as a debugger does: the addresses of its sections say where they are.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/image/elf_internal.h"

namespace jitunwind {

/// Links `file`, which `image` was read from: values of symbols become addresses, and relocations are applied in the
/// named sections (gABI, chapter 4 "Symbol Table", "Relocation"). A word stays unchanged if this file does not define
/// its symbol, or if Arch::relocations lacks its relocation. No more than 2^20 relocations are applied.
void link_object(const ElfImage& image, std::span<std::byte> file, std::span<const std::string_view> sections,
                 const Arch& arch) noexcept;

/// Adds the contents of these sections, if they are compressed, at the end of the file, and has their headers lead
/// there (gABI, chapter 4 "Section Compression"). The first section that cannot be decompressed, or would make the
/// file larger than `most`, stays as it is, and so do those behind it. Returns why, or null. Throws std::bad_alloc.
const char* decompress_sections(std::vector<std::byte>& file, std::span<const std::string_view> sections,
                                std::size_t most);

}  // namespace jitunwind

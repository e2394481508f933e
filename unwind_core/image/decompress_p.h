// Decompression into mappings of our own: zlib for debug sections, xz for .gnu_debugdata. Neither calls malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/image/elf_p.h"
#include "jitunwind/unwind_core/image/mapped_p.h"

namespace jitunwind {

/// Bytes of a section: in the image, or decompressed.
struct SectionData {
  std::span<const std::byte> bytes{};
  Block own;
};

/// Decompresses where the section says so: SHF_COMPRESSED with ELFCOMPRESS_ZLIB (gABI, chapter 4 "Section
/// Compression"), or a name that begins with ".zdebug" (GNU: "ZLIB", the size as 64 bits big-endian, a zlib stream).
/// Errors: bad_encoding for broken data and other compressions, too_deep for sizes beyond 1 GiB or beyond what zlib can
/// reach, out_of_memory. Signal-safe.
Result<SectionData> read_section(const ElfImage& image, const ElfSection& section) noexcept;

/// An .xz stream. At most 128 MiB come out, and the decoder gets at most 80 MiB, which is what xz -9 needs. Errors as
/// above. Signal-safe.
Result<Block> decompress_xz(std::span<const std::byte> stream) noexcept;

}  // namespace jitunwind

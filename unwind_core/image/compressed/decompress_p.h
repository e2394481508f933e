// What zlib, libzstd and liblzma do for files of debug information. Decompression is into mappings of our own: zlib and
// zstd for sections, xz for .gnu_debugdata. None calls malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/mapped_internal.h"

namespace jitunwind {

/// Bytes of a section: in the image, or decompressed.
struct SectionData {
  std::span<const std::byte> bytes{};
  Block own;
};

/// Decompresses where the section says so: SHF_COMPRESSED with ELFCOMPRESS_ZLIB or ELFCOMPRESS_ZSTD (gABI, chapter 4
/// "Section Compression"), or a name that begins with ".zdebug" (GNU: "ZLIB", the size as 64 bits big-endian, a zlib
/// stream). Errors: bad_encoding for broken data and other compressions, too_deep for sizes beyond 1 GiB or beyond what
/// such a stream can reach, out_of_memory. Error::what names the compression. Signal-safe.
Result<SectionData> read_section(const ElfImage& image, const ElfSection& section) noexcept;

inline constexpr const char* k_broken_zlib = "section compressed by zlib, which is broken or too large";
inline constexpr const char* k_broken_zstd = "section compressed by zstd, which is broken or too large";

/// Streams of which exactly `into` comes out. Errors as above; bad_encoding where this is built without the library.
Status decompress_zlib(std::span<const std::byte> stream, std::span<std::byte> into) noexcept;
Status decompress_zstd(std::span<const std::byte> stream, std::span<std::byte> into) noexcept;

/// An .xz stream. At most 128 MiB come out, and the decoder gets at most 80 MiB, which is what xz -9 needs. Errors as
/// above; bad_encoding where this is built without liblzma. Signal-safe.
Result<Block> decompress_xz(std::span<const std::byte> stream) noexcept;

/// The CRC of GDB's .gnu_debuglink (GDB manual, "Debugging Information in Separate Files"), of bytes that follow those
/// whose CRC is `before`; 0 for none. Signal-safe.
std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept;

}  // namespace jitunwind

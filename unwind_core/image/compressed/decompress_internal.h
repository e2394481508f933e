// Decompression of debug information into mappings of its own: zlib and zstd for sections, xz for .gnu_debugdata. None
// of the functions calls malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/above_internal.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

namespace jitunwind {

/// The bytes of a section. They are in the image, or in `own` after decompression.
struct SectionData {
  std::span<const std::byte> bytes{};
  Block own;
};

/// Decompresses a section if it says that it is compressed. It says so by SHF_COMPRESSED with ELFCOMPRESS_ZLIB or
/// ELFCOMPRESS_ZSTD (gABI, chapter 4 "Section Compression"), or by a name that begins with ".zdebug" (GNU: "ZLIB", the
/// size as 64 bits big-endian, a zlib stream). Fails with bad_encoding for broken data and other compressions, with
/// too_deep for sizes beyond 1 GiB or beyond what such a stream can reach, and with out_of_memory. Error::what names
/// the compression. Signal-safe.
[[gnu::visibility("default")]] Result<SectionData> read_section(const ElfImage& image,
                                                                const ElfSection& section) noexcept;

inline constexpr const char* k_broken_zlib = "section compressed by zlib, which is broken or too large";
inline constexpr const char* k_broken_zstd = "section compressed by zstd, which is broken or too large";

/// Decompress a stream that yields exactly as many bytes as `into` has. Errors: as above; bad_encoding when this is
/// built without the library.
JITUNWIND_ABOVE Status decompress_zlib(std::span<const std::byte> stream, std::span<std::byte> into) noexcept;
JITUNWIND_ABOVE Status decompress_zstd(std::span<const std::byte> stream, std::span<std::byte> into) noexcept;

/// Decompresses an .xz stream into at most 128 MiB. The decoder gets at most 80 MiB of memory, which is what xz -9
/// needs. Errors: as above; bad_encoding when this is built without liblzma. Signal-safe.
JITUNWIND_ABOVE Result<Block> decompress_xz(std::span<const std::byte> stream) noexcept;

/// The CRC of .gnu_debuglink (GDB manual, "Debugging Information in Separate Files"). `before` is the CRC of the bytes
/// before these, 0 if there are none. Signal-safe.
std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept;

}  // namespace jitunwind

#include <elf.h>

#include <array>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << 30;
constexpr std::uint32_t k_of_zstd = 2;  // ELFCOMPRESS_ZSTD, which elf.h of glibc 2.36 and older lacks

struct Compression {
  std::uint64_t factor;  ///< largest number of output bytes for one input byte
  Status (*decompress)(std::span<const std::byte> stream, std::span<std::byte> into) noexcept;
  const char* broken;
};
// zlib technical details, "Maximum Compression Factor": 1032 to 1.
constexpr Compression k_zlib{1032, &decompress_zlib, k_broken_zlib};
// RFC 8878, 3.1.1.2: a block of at most 128 KiB takes a header of 3 bytes and at least one more byte.
constexpr Compression k_zstd{(std::uint64_t{128} << 10) / 4, &decompress_zstd, k_broken_zstd};

struct Compressed {
  const Compression& by;
  std::span<const std::byte> stream;
  std::uint64_t size;
};

/// Elf32_Chdr holds type, size and alignment; Elf64_Chdr holds type, a reserved word, size and alignment.
Result<Compressed> compression_header(const ElfImage& image, std::span<const std::byte> stored) noexcept {
  ByteReader r(stored, image.big_endian());
  const std::uint32_t type = r.u32();
  if (image.is_64()) r.skip(4);
  const std::uint64_t size = r.unsigned_of(image.is_64() ? 8 : 4);
  r.skip(image.is_64() ? 8 : 4);
  if (!r.ok()) return r.error("compressed section that ends in its header");
  if (type != ELFCOMPRESS_ZLIB && type != k_of_zstd)
    return Error{ErrorCode::bad_encoding, type, "section compressed neither by zlib nor by zstd"};
  return Compressed{type == k_of_zstd ? k_zstd : k_zlib, r.rest(), size};
}

Result<Compressed> zdebug_header(std::span<const std::byte> stored) noexcept {
  ByteReader r(stored, true);
  const std::uint32_t magic = r.u32();
  const std::uint64_t size = r.u64();
  if (!r.ok()) return r.error("compressed section .zdebug that ends in its header");
  if (magic != 0x5a4c4942) return Error{ErrorCode::bad_encoding, 0, "compressed section .zdebug without its magic"};
  return Compressed{k_zlib, r.rest(), size};
}

Result<Block> decompress(const Compressed& from) noexcept {
  if (from.size > k_most_bytes || from.size / from.by.factor > from.stream.size())
    return Error{ErrorCode::too_deep, 0, from.by.broken};
  if (from.size == 0) return Error{ErrorCode::bad_encoding, 0, from.by.broken};
  if (!is_above(from.by.decompress)) return Error{ErrorCode::bad_encoding, 0, k_not_above};
  Block out(static_cast<std::size_t>(from.size));
  if (out.empty()) return Error{ErrorCode::out_of_memory, 0, "decompressed section"};
  if (const Status done = from.by.decompress(from.stream, out.bytes()); !done) return done.error();
  return out;
}

}  // namespace

Result<SectionData> read_section(const ElfImage& image, const ElfSection& section) noexcept {
  const auto stored = image.contents(section);
  const bool by_flag = (section.flags & SHF_COMPRESSED) != 0;
  if (!by_flag && !image.name(section).starts_with(".zdebug")) return SectionData{stored, {}};
  const auto compressed = by_flag ? compression_header(image, stored) : zdebug_header(stored);
  if (!compressed) return compressed.error();
  auto block = decompress(*compressed);
  if (!block) return block.error();
  const std::span<const std::byte> bytes = block->bytes();
  return SectionData{bytes, std::move(*block)};
}

/// The CRC of IEEE 802.3 with its polynomial bit-reversed, computed by bytes.
std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static constexpr auto k_of_byte = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
      table[byte] = crc;
    }
    return table;
  }();
  std::uint32_t crc = ~before;
  for (const std::byte b : bytes) crc = (crc >> 8) ^ k_of_byte[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~crc;
}

}  // namespace jitunwind

#include <elf.h>

#include "jitunwind/unwind_core/image/compressed/decompress_p.h"

namespace jitunwind {
namespace {

struct Compressed {
  std::span<const std::byte> stream;
  std::uint64_t size;
};

/// Elf32_Chdr: type, size, alignment. Elf64_Chdr: type, reserved, size, alignment.
Result<Compressed> compression_header(const ElfImage& image, std::span<const std::byte> stored) noexcept {
  ByteReader r(stored, image.big_endian());
  const std::uint32_t type = r.u32();
  if (image.is_64()) r.skip(4);
  const std::uint64_t size = r.unsigned_of(image.is_64() ? 8 : 4);
  r.skip(image.is_64() ? 8 : 4);
  if (!r.ok()) return r.error("compression header");
  if (type != ELFCOMPRESS_ZLIB) return Error{ErrorCode::bad_encoding, 0, "kind of compression"};
  return Compressed{r.rest(), size};
}

Result<Compressed> zdebug_header(std::span<const std::byte> stored) noexcept {
  ByteReader r(stored, true);
  const std::uint32_t magic = r.u32();
  const std::uint64_t size = r.u64();
  if (!r.ok()) return r.error("header of a .zdebug section");
  if (magic != 0x5a4c4942) return Error{ErrorCode::bad_encoding, 0, "magic of a .zdebug section"};
  return Compressed{r.rest(), size};
}

}  // namespace

Result<SectionData> read_section(const ElfImage& image, const ElfSection& section) noexcept {
  const auto stored = image.contents(section);
  const bool by_flag = (section.flags & SHF_COMPRESSED) != 0;
  if (!by_flag && !image.name(section).starts_with(".zdebug")) return SectionData{stored, {}};
  const auto compressed = by_flag ? compression_header(image, stored) : zdebug_header(stored);
  if (!compressed) return compressed.error();
  auto block = decompress_zlib(compressed->stream, compressed->size);
  if (!block) return block.error();
  const std::span<const std::byte> bytes = block->bytes();
  return SectionData{bytes, std::move(*block)};
}

}  // namespace jitunwind

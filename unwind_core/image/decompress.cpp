#include <elf.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "jitunwind/unwind_core/image/decompress_p.h"

namespace jitunwind {
namespace {

constexpr std::uint64_t k_most_inflated = std::uint64_t{1} << 30;
// zlib technical details, "Maximum Compression Factor": 1032 to 1.
constexpr std::uint64_t k_zlib_factor = 1032;
constexpr std::uint64_t k_xz_decoder_memory = std::uint64_t{80} << 20;
constexpr std::size_t k_most_from_xz = std::size_t{128} << 20;

/// The few allocations that a decoder makes, a mapping each.
class DecoderMemory {
 public:
  void* allocate(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    const auto free_block = std::ranges::find_if(blocks_, &Block::empty);
    if (free_block == blocks_.end() || __builtin_mul_overflow(count, size, &bytes) || bytes == 0) return nullptr;
    *free_block = Block(bytes);
    return free_block->bytes().data();
  }
  void release(void* memory) noexcept {
    for (Block& block : blocks_)
      if (memory && block.bytes().data() == memory) Block(std::move(block));
  }

 private:
  std::array<Block, 24> blocks_;  // zlib makes 2, liblzma under 10
};

void* zlib_allocate(void* memory, uInt count, uInt size) {
  return static_cast<DecoderMemory*>(memory)->allocate(count, size);
}
void* lzma_allocate(void* memory, std::size_t count, std::size_t size) {
  return static_cast<DecoderMemory*>(memory)->allocate(count, size);
}
void release(void* memory, void* block) { static_cast<DecoderMemory*>(memory)->release(block); }

Result<Block> decompress_zlib(std::span<const std::byte> in, std::uint64_t size) noexcept {
  if (size > k_most_inflated || size / k_zlib_factor > in.size() || in.size() > std::numeric_limits<uInt>::max())
    return Error{ErrorCode::too_deep, 0, "size of a compressed section"};
  if (size == 0) return Error{ErrorCode::bad_encoding, 0, "empty compressed section"};
  Block out(static_cast<std::size_t>(size));
  if (out.empty()) return Error{ErrorCode::out_of_memory, 0, "decompressed section"};

  DecoderMemory memory;
  z_stream stream{};
  stream.zalloc = &zlib_allocate;
  stream.zfree = &release;
  stream.opaque = &memory;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.bytes().data());
  stream.avail_out = static_cast<uInt>(size);
  if (::inflateInit(&stream) != Z_OK) return Error{ErrorCode::out_of_memory, 0, "zlib"};
  const int end = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  if (end != Z_STREAM_END || stream.avail_out != 0) return Error{ErrorCode::bad_encoding, 0, "compressed section"};
  return out;
}

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

Result<Block> decompress_xz(std::span<const std::byte> in) noexcept {
  Block out(std::clamp<std::size_t>(in.size() * 4, 4096, k_most_from_xz));
  if (out.empty()) return Error{ErrorCode::out_of_memory, 0, "decompressed symbols"};
  DecoderMemory memory;
  const lzma_allocator allocator{&lzma_allocate, &release, &memory};
  lzma_stream stream = LZMA_STREAM_INIT;
  stream.allocator = &allocator;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
  stream.avail_in = in.size();
  if (::lzma_stream_decoder(&stream, k_xz_decoder_memory, 0) != LZMA_OK)
    return Error{ErrorCode::out_of_memory, 0, "liblzma"};
  lzma_ret ret = LZMA_OK;
  while (ret == LZMA_OK) {
    const auto produced = static_cast<std::size_t>(stream.total_out);
    if (produced == out.bytes().size()) {
      if (produced == k_most_from_xz || !out.resize(std::min(produced * 2, k_most_from_xz))) break;
    }
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.bytes().data()) + produced;
    stream.avail_out = out.bytes().size() - produced;
    ret = ::lzma_code(&stream, LZMA_FINISH);
  }
  const auto produced = static_cast<std::size_t>(stream.total_out);
  ::lzma_end(&stream);
  if (ret == LZMA_OK) return Error{ErrorCode::too_deep, 0, "size of compressed symbols"};
  if (ret == LZMA_MEM_ERROR || ret == LZMA_MEMLIMIT_ERROR) return Error{ErrorCode::out_of_memory, 0, "liblzma"};
  if (ret != LZMA_STREAM_END || produced == 0 || !out.resize(produced))
    return Error{ErrorCode::bad_encoding, 0, "compressed symbols"};
  return out;
}

}  // namespace jitunwind

// Decoders of other libraries. Each function that is built without its library refuses (JITUNWIND_ZLIB, JITUNWIND_ZSTD,
// JITUNWIND_LZMA).
#ifdef JITUNWIND_HAS_LZMA
#include <lzma.h>
#endif
#ifdef JITUNWIND_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef JITUNWIND_HAS_ZSTD
#define ZSTD_STATIC_LINKING_ONLY  // declares decoders with memory of the caller; libzstd 1.3 and later export them
#include <zstd.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

namespace jitunwind {
namespace {

/// The few allocations of a decoder, which would otherwise call malloc. Each is a mapping of its own.
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
  std::array<Block, 24> blocks_;  // zlib makes 2, libzstd 1, liblzma under 10
};

/// Functions for the decoders' interfaces. Both take a DecoderMemory as their first argument.
template <class Count>
[[maybe_unused]] void* allocate_for_decoder(void* memory, Count count, Count size) {
  return static_cast<DecoderMemory*>(memory)->allocate(count, size);
}
[[maybe_unused]] void release_of_decoder(void* memory, void* block) {
  static_cast<DecoderMemory*>(memory)->release(block);
}

}  // namespace

#ifdef JITUNWIND_HAS_ZLIB
Status decompress_zlib(std::span<const std::byte> in, std::span<std::byte> into) noexcept {
  if (in.size() > std::numeric_limits<uInt>::max()) return Error{ErrorCode::too_deep, 0, k_broken_zlib};
  DecoderMemory memory;
  z_stream stream{};
  stream.zalloc = &allocate_for_decoder<uInt>;
  stream.zfree = &release_of_decoder;
  stream.opaque = &memory;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  if (::inflateInit(&stream) != Z_OK) return Error{ErrorCode::out_of_memory, 0, "zlib"};
  const int end = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  if (end != Z_STREAM_END || stream.avail_out != 0) return Error{ErrorCode::bad_encoding, 0, k_broken_zlib};
  return Done{};
}
#else
Status decompress_zlib(std::span<const std::byte>, std::span<std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "section compressed by zlib, which this is built without"};
}
#endif

#ifdef JITUNWIND_HAS_ZSTD
namespace {

/// Frames of releases before 0.8 have other magic numbers, and their decoders call malloc.
bool is_frame(std::span<const std::byte> in) noexcept {
  constexpr unsigned char k_magic[] = {0x28, 0xb5, 0x2f, 0xfd};  // RFC 8878, 3.1.1
  return in.size() >= sizeof k_magic && std::memcmp(in.data(), k_magic, sizeof k_magic) == 0;
}

}  // namespace

Status decompress_zstd(std::span<const std::byte> in, std::span<std::byte> into) noexcept {
  DecoderMemory memory;
  const auto allocate = [](void* of, std::size_t size) { return allocate_for_decoder<std::size_t>(of, 1, size); };
  ZSTD_DCtx* const decoder = ::ZSTD_createDCtx_advanced({allocate, &release_of_decoder, &memory});
  if (!decoder) return Error{ErrorCode::out_of_memory, 0, "libzstd"};
  // mold writes a frame for each piece of a section.
  while (is_frame(in)) {
    const std::size_t size = ::ZSTD_findFrameCompressedSize(in.data(), in.size());
    if (::ZSTD_isError(size)) break;
    const std::size_t out = ::ZSTD_decompressDCtx(decoder, into.data(), into.size(), in.data(), size);
    if (::ZSTD_isError(out)) break;
    in = in.subspan(size);
    into = into.subspan(out);
  }
  ::ZSTD_freeDCtx(decoder);
  if (!in.empty() || !into.empty()) return Error{ErrorCode::bad_encoding, 0, k_broken_zstd};
  return Done{};
}
#else
Status decompress_zstd(std::span<const std::byte>, std::span<std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "section compressed by zstd, which this is built without"};
}
#endif

#ifdef JITUNWIND_HAS_LZMA
namespace {

constexpr std::uint64_t k_xz_decoder_memory = std::uint64_t{80} << 20;
constexpr std::size_t k_most_from_xz = std::size_t{128} << 20;

}  // namespace

Result<Block> decompress_xz(std::span<const std::byte> in) noexcept {
  Block out(std::clamp<std::size_t>(in.size() * 4, 4096, k_most_from_xz));
  if (out.empty()) return Error{ErrorCode::out_of_memory, 0, "decompressed symbols"};
  DecoderMemory memory;
  const lzma_allocator allocator{&allocate_for_decoder<std::size_t>, &release_of_decoder, &memory};
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
#else
Result<Block> decompress_xz(std::span<const std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "compressed: built without liblzma"};
}
#endif

}  // namespace jitunwind

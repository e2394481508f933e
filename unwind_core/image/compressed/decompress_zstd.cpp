#define ZSTD_STATIC_LINKING_ONLY  // declares decoders with memory of the caller; libzstd 1.3 and later export them
#include <zstd.h>

#include <cstring>

#include "jitunwind/unwind_core/image/compressed/decoder_memory_p.h"
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {
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

}  // namespace jitunwind

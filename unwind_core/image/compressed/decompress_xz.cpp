#include <lzma.h>

#include <algorithm>

#include "jitunwind/unwind_core/image/compressed/decoder_memory_p.h"
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {
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

}  // namespace jitunwind

#include <zlib.h>

#include <limits>

#include "jitunwind/unwind_core/image/compressed/decoder_memory_p.h"
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {

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

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace jitunwind

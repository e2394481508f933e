// Replaces decompress_zlib.cpp when zlib is not available (JITUNWIND_ZLIB).
#include <array>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {

Status decompress_zlib(std::span<const std::byte>, std::span<std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "section compressed by zlib, which this is built without"};
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

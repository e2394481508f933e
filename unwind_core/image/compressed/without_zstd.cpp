// Replaces decompress_zstd.cpp when libzstd is not available (JITUNWIND_ZSTD).
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {

Status decompress_zstd(std::span<const std::byte>, std::span<std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "section compressed by zstd, which this is built without"};
}

}  // namespace jitunwind

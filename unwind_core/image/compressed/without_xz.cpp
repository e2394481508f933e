// Replaces decompress_xz.cpp when liblzma is not available (JITUNWIND_LZMA).
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {

Result<Block> decompress_xz(std::span<const std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "compressed: built without liblzma"};
}

}  // namespace jitunwind

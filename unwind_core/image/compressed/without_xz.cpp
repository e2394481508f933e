// In the place of decompress_xz.cpp where the library is not there (JITUNWIND_LZMA).
#include "jitunwind/unwind_core/image/compressed/decompress_p.h"

namespace jitunwind {

Result<Block> decompress_xz(std::span<const std::byte>) noexcept {
  return Error{ErrorCode::bad_encoding, 0, "compressed: built without liblzma"};
}

}  // namespace jitunwind

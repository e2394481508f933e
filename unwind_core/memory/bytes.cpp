#include "jitunwind/unwind_core/memory/bytes.h"

#include <algorithm>

namespace jitunwind {

std::size_t BytesMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    const auto piece = std::ranges::find_if(pieces_, [&](const Piece& p) { return next - p.address < p.bytes.size(); });
    if (piece == pieces_.end()) break;
    const auto bytes = piece->bytes.subspan(static_cast<std::size_t>(next - piece->address));
    const std::size_t size = std::min(bytes.size(), into.size() - done);
    std::copy_n(bytes.begin(), size, into.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
  }
  return done;
}

}  // namespace jitunwind

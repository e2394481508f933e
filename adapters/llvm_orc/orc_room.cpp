#include "jitunwind/adapters/llvm_orc/orc_room_p.h"

#include <algorithm>

namespace jitunwind {
namespace {

/// References of 32 bits reach 2 GiB; some lie behind the begin of what they are in.
constexpr std::uint64_t k_reach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 24);

/// The parts' places behind a start that is aligned to `alignment`, which this sets; returns the size of all.
std::uint64_t lay_out(std::span<OrcCode> parts, std::uint64_t& alignment) noexcept {
  std::uint64_t end = 0;
  for (OrcCode& part : parts) {
    end += (part.alignment_offset - end) % part.alignment;
    part.start = end;
    end += part.size;
    alignment = std::max(alignment, part.alignment);
  }
  return end;
}

bool reaches(AddrRange room, std::span<const AddrRange> data) noexcept {
  return std::all_of(data.begin(), data.end(),
                     [&](AddrRange d) { return std::max(d.end, room.end) - std::min(d.begin, room.begin) < k_reach; });
}

}  // namespace

OrcRoom& OrcRoom::operator=(OrcRoom&& other) noexcept {
  release();
  segments_ = std::exchange(other.segments_, nullptr);
  code_ = other.code_;
  return *this;
}

OrcRoom OrcRoom::allocate(CodeSegments* segments, std::span<OrcCode> parts, std::size_t functions,
                          std::span<const AddrRange> data) {
  if (segments == nullptr) return {};
  std::uint64_t alignment = 16;
  const std::uint64_t size = lay_out(parts, alignment);
  const auto allocated = segments->allocate(size, functions, alignment);
  if (!allocated) return {};
  OrcRoom room(segments, {allocated->start, allocated->start + size});
  if (!reaches(room.code_, data)) return {};
  for (OrcCode& part : parts) {
    part.writable = allocated->writable.data() + part.start;
    part.start += allocated->start;
  }
  return room;
}

void OrcRoom::publish() noexcept {
  if (segments_ != nullptr) (void)segments_->publish(code_);
}

void OrcRoom::release() noexcept {
  if (segments_ != nullptr) (void)std::exchange(segments_, nullptr)->release(code_.begin);
}

}  // namespace jitunwind

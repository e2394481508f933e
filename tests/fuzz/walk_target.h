// All queries about a target whose bytes are an input.
#pragma once

#include <array>

#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/sdk/walk.h"
#include "tests/fuzz/fuzz_check.h"

namespace jitunwind::fuzz {

/// Counts the bytes that are read of another memory.
class MeteredMemory final : public Memory {
 public:
  explicit MeteredMemory(const Memory& memory) : memory_(memory) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads;
    return memory_.read(at, into, window);
  }
  mutable std::size_t reads = 0;

 private:
  const Memory& memory_;
};

/// Walks a thread and queries each frame; returns the number of frames.
inline std::size_t walk_target(const TargetSpace& target, const RegisterFile& registers, Guesses guesses) {
  constexpr std::size_t k_most_frames = 10'000;
  Cursor cursor(target.space(), registers, Cursor::Top::interrupted);
  cursor.set_guesses(guesses);
  Walk walk(cursor);
  std::size_t frames = 0;
  for (const Frame& frame : walk) {
    if (++frames == k_most_frames) return frames;
    if (frames > 100) continue;
    std::array<char, 32> name{};
    if (const auto named = frame.raw_name(name))
      check(std::memchr(name.data(), 0, name.size()) != nullptr, "a name ends");
    (void)frame.procedure();
    (void)frame.is_signal_frame();
    if (frame.origin() != RowOrigin::none) {
      FrameRow row;
      check(static_cast<bool>(frame.row(row)), "a frame with an origin has a row");
    }
  }
  check(walk.stop_reason() != StopReason::none, "a walk that has ended says why");
  check(!walk.why().empty(), "in words");
  return frames;
}

}  // namespace jitunwind::fuzz

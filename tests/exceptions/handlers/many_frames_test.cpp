// Exceptions through many procedures of one description, on the exception runtime of our own.
#include <gtest/gtest.h>

#include <deque>

#include "jitunwind/unwind_core/trace/counters.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {
namespace {

void throw_one() { throw 1; }

bool is_thrown_through(const FrameOfKind& frame) {
  try {
    frame(throw_one);
  } catch (int) {
    return true;
  }
  return false;
}

class ManyFrames : public testing::TestWithParam<FrameKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ManyFrames, testing::Values(FrameKind::plain, FrameKind::frame_pointer),
                         [](const auto& info) { return name_of(info.param); });

// Each is new code when it is thrown through, and only the first ones have their rows made.
TEST_P(ManyFrames, OfOneShapeHaveTheirRowsMadeOnce) {
  constexpr std::size_t k_frames = 200;
  std::deque<FrameOfKind> frames;
  for (std::size_t i = 0; i < k_frames; ++i) frames.emplace_back(GetParam());
  const std::uint64_t made = counted(Counter::row_made);
  for (const FrameOfKind& frame : frames) EXPECT_TRUE(is_thrown_through(frame));
  EXPECT_LT(counted(Counter::row_made) - made, k_frames / 4);
}

}  // namespace
}  // namespace jitunwind::test

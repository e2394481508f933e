// When a walk is recorded for those that follow: where it pays, and rarely where it does not.
#include "jitunwind/unwind_core/walk/last_walk_p.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace jitunwind {
namespace {

constexpr std::size_t k_frames = 40;

std::array<void*, k_frames> addresses(std::uintptr_t first) {
  std::array<void*, k_frames> all;
  for (void*& address : all) address = reinterpret_cast<void*>(first++);
  return all;
}

/// Of `walks`, each of which finds `known(walk)` frames and has other inner frames if `differs(walk)`.
template <class Known, class Differs>
std::size_t recorded_of(std::size_t walks, Known known, Differs differs) {
  RecordingPolicy policy;
  std::size_t recorded = 0;
  for (std::size_t walk = 0; walk < walks; ++walk) {
    if (policy.skips_look()) continue;
    if (policy.wants(known(walk), addresses(differs(walk) ? 0x1000 * walk : 0), k_frames)) ++recorded;
  }
  return recorded;
}

TEST(RecordingPolicy, RecordsAtOnceWhatIsNotKnown) {
  RecordingPolicy policy;
  EXPECT_TRUE(policy.wants(0, addresses(1), 0));
}

TEST(RecordingPolicy, LeavesWhatIsMostlyKnown) {
  EXPECT_EQ(recorded_of(
                1000, [](auto) { return k_frames; }, [](auto) { return false; }),
            0u);
  EXPECT_EQ(recorded_of(
                1000, [](auto) { return k_frames - 5; }, [](auto) { return true; }),
            0u);
}

/// A stack that has grown, or of which another part is the same again and again.
TEST(RecordingPolicy, RecordsWhatComesAgain) {
  EXPECT_GT(recorded_of(
                100, [](auto) { return k_frames - 5; }, [](auto) { return false; }),
            0u);
}

TEST(RecordingPolicy, RecordsAgainWhereCodeHasChanged) {
  RecordingPolicy policy;
  EXPECT_FALSE(policy.wants(k_frames - 5, addresses(1), k_frames));
  policy.set_stale();
  EXPECT_TRUE(policy.wants(k_frames - 5, addresses(2), k_frames));
  EXPECT_FALSE(policy.wants(k_frames - 5, addresses(3), k_frames)) << "it is fresh now";
}

/// Walks that have nothing in common are recorded, and looked at, ever more rarely.
TEST(RecordingPolicy, GivesUpWhereNothingIsCommon) {
  std::size_t looked = 0;
  RecordingPolicy policy;
  std::size_t recorded = 0;
  constexpr std::size_t k_walks = 100'000;
  for (std::size_t walk = 0; walk < k_walks; ++walk) {
    if (policy.skips_look()) continue;
    ++looked;
    if (policy.wants(0, addresses(0x1000 * walk), k_frames)) ++recorded;
  }
  EXPECT_LT(recorded, k_walks / 1000);
  EXPECT_LT(looked, k_walks / 10);
  EXPECT_GT(recorded, 0u);
}

/// ... and soon again once they have.
TEST(RecordingPolicy, ComesBack) {
  RecordingPolicy policy;
  for (std::size_t walk = 0; walk < 100'000; ++walk)
    if (!policy.skips_look()) (void)policy.wants(0, addresses(0x1000 * walk), k_frames);
  bool recorded = false;
  std::size_t walks = 0;
  for (; !recorded && walks < 10'000; ++walks)
    recorded = !policy.skips_look() && policy.wants(0, addresses(7), k_frames);
  EXPECT_TRUE(recorded);
  // From now on all is known.
  std::size_t looked = 0;
  for (walks = 0; walks < 1000; ++walks) {
    if (policy.skips_look()) continue;
    ++looked;
    EXPECT_FALSE(policy.wants(k_frames, addresses(7), k_frames));
  }
  EXPECT_GT(looked, 700u);
}

}  // namespace
}  // namespace jitunwind

#include <gtest/gtest.h>

#include "tests/walk/mixed_walks.h"

namespace jitunwind::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(JITUNWIND_CLANG_SANITIZER)
constexpr std::size_t k_stacks = 250;
#else
constexpr std::size_t k_stacks = 4'000;
#endif

// covers: LU27 UX36
TEST(MixedWalks, EveryWayToWalkFindsTheSame) {
  const MixedWalkFigures figures = walk_mixed_stacks(k_stacks);
  std::puts(figures.text().c_str());
  EXPECT_TRUE(figures.ok()) << figures.text();
  EXPECT_GT(figures.compared, 2 * figures.stacks);
  EXPECT_GT(figures.deepest, 60u);
#ifndef __SANITIZE_THREAD__
  EXPECT_GT(figures.in_handlers, figures.stacks / 4);
  EXPECT_GT(figures.by_timer, 0u);
#endif
}

}  // namespace
}  // namespace jitunwind::test

#include <gtest/gtest.h>

#include "tests/support/emulated.h"
#include "tests/walk/churn.h"

namespace jitunwind::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::size_t k_walks = 2'000;
#else
constexpr std::size_t k_walks = repetitions(20'000);
#endif

// covers: CA08 SF06
TEST(Churn, NoWalkIsWrongOrShort) {
  const ChurnFigures figures = churn(k_walks);
  EXPECT_EQ(figures.wrong, 0u) << figures.text();
  EXPECT_EQ(figures.short_ones, 0u) << figures.text();
  EXPECT_GE(figures.walks, k_walks);
  EXPECT_GT(figures.jit_frames, figures.walks);
  EXPECT_GT(figures.replaced, 1000u);
}

}  // namespace
}  // namespace jitunwind::test

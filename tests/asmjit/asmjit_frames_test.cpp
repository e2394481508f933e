// Frames that asmjit makes by itself: some of all shapes, at every instruction. tests/prove has all of them.
#include <gtest/gtest.h>

#include "tests/asmjit/frame_runs.h"

namespace jitunwind::test {
namespace {

void expect_right(EmitterKind kind, std::size_t together) {
  const FrameRunFigures figures = run_frames(kind, some_frame_wishes(), together);
  EXPECT_TRUE(figures.ok()) << figures.text() << "\n" << figures.failures;
  std::puts(figures.text().c_str());
}

// covers: DY47
TEST(AsmjitFrames, OfAnAssemblerAreRightAtEveryInstruction) { expect_right(EmitterKind::assembler, 1); }
// covers: DY47
TEST(AsmjitFrames, OfABuilderAreRightAtEveryInstruction) { expect_right(EmitterKind::builder, 5); }
// covers: DY47
TEST(AsmjitFrames, OfAPlainBuilderAreRightAtEveryInstruction) { expect_right(EmitterKind::plain_builder, 5); }
// covers: DY47
TEST(AsmjitFrames, OfACompilerAreRightAtEveryInstruction) { expect_right(EmitterKind::compiler, 5); }

TEST(Idioms, AreRightAtEveryInstruction) {
  const std::vector<IdiomWish> all = all_idiom_wishes();
  std::vector<IdiomWish> some;
  for (std::size_t i = 0; i < all.size(); i += 37) some.push_back(all[i]);
  const FrameRunFigures figures = run_idioms(some);
  EXPECT_TRUE(figures.ok()) << figures.text() << "\n" << figures.failures;
  std::puts(figures.text().c_str());
}

}  // namespace
}  // namespace jitunwind::test

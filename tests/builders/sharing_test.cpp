// Frame shapes: one object for all procedures that are alike, as long as any of them needs it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/builders/described.h"
#include "tests/support/counted_allocations.h"

namespace jitunwind {
namespace {

using namespace x86_64;

/// push rbp; mov rbp,rsp; push rbx; push r12; .. body of any length ..; pop r12; pop rbx; pop rbp; ret
Builder framed(std::int64_t body) {
  const std::int64_t end = 12 + body;
  Builder b = describe().size(static_cast<std::uint64_t>(end));
  b.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx).push({5, 7}, r12);
  b.pop({end - 5, end - 3}, r12).pop({end - 3, end - 2}, rbx).pop({end - 2, end - 1}, rbp);
  return b;
}

// covers: DY12 DY27
TEST(FrameShapes, AThousandProceduresOwnOneRegionList) {
  const FrameShapeStatistics before = frame_shape_statistics();
  std::vector<Description> functions;
  for (int i = 0; i < 1000; ++i) {
    const auto built = framed(i).build();
    ASSERT_TRUE(built) << built.error().text();
    functions.push_back(*built);
  }
  EXPECT_EQ(frame_shape_statistics().shapes, before.shapes + 1);
  EXPECT_EQ(functions[0].shape().users(), 1000u);
  for (const Description& f : functions) EXPECT_EQ(f.shape().regions(), functions[0].shape().regions());
  const std::size_t shared = frame_shape_statistics().bytes - before.bytes;
  EXPECT_EQ(shared, functions[0].shape().bytes());
  EXPECT_LT(shared, 512u);  // 128 + 64 bytes of regions, and what keeps them
  std::printf("1000 procedures: 1 shape of %zu bytes\n", shared);

  // Half of them are cancelled, and then all but the one in the middle.
  functions.erase(functions.begin(), functions.begin() + 500);
  EXPECT_EQ(functions[0].shape().users(), 500u);
  functions.erase(functions.begin() + 1, functions.end());
  EXPECT_EQ(functions[0].shape().users(), 1u);
  EXPECT_EQ(functions[0].shape().directives_text(), framed(7).build()->shape().directives_text());
  functions.clear();
  EXPECT_EQ(frame_shape_statistics().shapes, before.shapes);
  EXPECT_EQ(frame_shape_statistics().bytes, before.bytes);
}

TEST(FrameShapes, DifferInWhatMatters) {
  const Description a = *framed(8).build();
  EXPECT_EQ(a.shape(), framed(9).build()->shape());
  EXPECT_EQ(a.shape(), Builder(framed(9)).personality(0x1234).build()->shape());
  EXPECT_FALSE(a.shape() == describe().push({0, 1}, rbp).pop({-2, -1}, rbp).build()->shape());
  EXPECT_FALSE(a.shape() == describe().build()->shape());
  // The directives have the same bytes on another CPU.
  EXPECT_FALSE(describe().build()->shape() == aarch64::describe().build()->shape());
}

TEST(FrameShapes, AreCountedByCopies) {
  FrameShape empty;
  EXPECT_FALSE(empty);
  FrameShape a = framed(8).build()->shape();
  EXPECT_EQ(a.users(), 1u);
  FrameShape b = a;
  EXPECT_EQ(a.users(), 2u);
  FrameShape c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move): empty is what moving leaves
  EXPECT_EQ(c.users(), 2u);
  a = c;
  EXPECT_EQ(c.users(), 2u);
  a = empty;
  EXPECT_EQ(c.users(), 1u);
}

TEST(FrameShapes, AreCheckedOnce) {
  // Known shapes are found again without a check, but with their warnings.
  const Builder warned = describe().region(4).add(2, rsp, 8).add(1, rsp, -8);
  const auto first = warned.build();
  const auto second = Builder(warned).build();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->warnings().size(), 1u);
  EXPECT_EQ(second->warnings().size(), 1u);
  EXPECT_EQ(first->shape(), second->shape());
  // The size is always checked.
  EXPECT_FALSE(Builder(warned).size(3).build());
  EXPECT_FALSE(Builder(warned).size(0).build());
}

TEST(FrameShapes, OfRowsAreSharedToo) {
  const FrameShapeStatistics before = frame_shape_statistics();
  std::vector<Description> functions;
  for (int i = 0; i < 1000; ++i) {
    Builder b = describe().row_at(8, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]").row_at(-1, "cfa=rsp+8 ra=[cfa-8]");
    functions.push_back(*b.build());
  }
  EXPECT_EQ(frame_shape_statistics().shapes, before.shapes + 1);
  std::printf("1000 procedures of rows: 1 shape of %zu bytes\n", frame_shape_statistics().bytes - before.bytes);
  functions.clear();
  EXPECT_EQ(frame_shape_statistics().bytes, before.bytes);
}

// Interning, losing the last reference and finding again race with each other on the same few shapes.
TEST(FrameShapes, SurviveThreads) {
  const FrameShapeStatistics before = frame_shape_statistics();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] {
      FrameShape kept;
      for (int i = 0; i < 2000; ++i) {
        const std::int64_t frame = 8 * ((i + t) % 3);
        const auto built = describe().allocate({0, 4}, 8 + frame).deallocate({-5, -1}, 8 + frame).build();
        if (!built || built->row(4, 16)->cfa.offset != 16 + frame) ++wrong;
        if (i % 5 == 0) kept = built->shape();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(frame_shape_statistics().shapes, before.shapes);
  EXPECT_EQ(frame_shape_statistics().bytes, before.bytes);
}

TEST(FrameShapes, SurviveForkWhileAnotherThreadIsBuilding) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    for (int i = 0; !stop; ++i) (void)describe().allocate({0, 4}, 8 * (1 + i % 64)).ends_without_return().build();
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a lock that the other thread held would be held for ever
      _exit(framed(8).build() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace jitunwind

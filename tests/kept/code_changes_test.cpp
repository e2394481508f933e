// The addresses that a change counts for.
#include "jitunwind/unwind_core/kept/code_changes_internal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <vector>

namespace jitunwind {

class CodeChangesTest : public testing::Test {
 protected:
  bool counts_for(std::uint64_t pc, std::uint64_t start, std::uint64_t end) {
    const std::uint64_t before = changes().number(pc);
    changes().count(start, end);
    return changes().number(pc) != before;
  }
  CodeChanges& changes() { return *changes_; }
  /// Sets the counts as after so many changes of all code, or of the stretch with this address.
  void have_changed_everywhere(std::uint64_t times) { changes_->everywhere_ = times; }
  void have_changed(std::uint64_t pc, std::uint64_t times) {
    changes_->counters()[CodeChanges::place_of(pc, 0)] = times;
  }
  std::uintptr_t counters_at() { return reinterpret_cast<std::uintptr_t>(&changes_->counters()); }

 private:
  std::unique_ptr<CodeChanges> changes_ = std::make_unique<CodeChanges>();
};

namespace {

constexpr std::uint64_t k_code = 0x7f0012340000;

TEST_F(CodeChangesTest, EveryAddressOfAChangeCounts) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t size = random() % (std::uint64_t{2} << (random() % 24)) + 1;
    const std::uint64_t start = k_code + random() % (1u << 28);
    for (const std::uint64_t pc : {start, start + size - 1, start + random() % size})
      ASSERT_TRUE(counts_for(pc, start, start + size)) << std::hex << pc << " of " << start << " + " << size;
  }
}

TEST_F(CodeChangesTest, NeighboursDoNot) {
  // Each size is first used where no other counts: it begins to count for the whole region then.
  for (const std::uint64_t size : {64u, 256u, 1024u, 4096u, 16384u}) {
    changes().count(k_code, k_code + size);
    EXPECT_FALSE(counts_for(k_code, k_code + size, k_code + 2 * size)) << size;
    EXPECT_FALSE(counts_for(k_code + 4 * size - 1, k_code + 4 * size, k_code + 5 * size)) << size;
  }
  EXPECT_FALSE(counts_for(k_code, k_code + (1u << 20), k_code + (3u << 20)));
}

TEST_F(CodeChangesTest, WhatIsTooLargeCountsEverywhere) {
  const std::uint64_t before = changes().everywhere();
  EXPECT_TRUE(counts_for(8, k_code, k_code + (64u << 20)));
  EXPECT_TRUE(counts_for(8, 0, ~std::uint64_t{0}));
  EXPECT_NE(changes().everywhere(), before);
}

TEST_F(CodeChangesTest, BesideWritersEveryAddressOfAChangeCounts) {
  const auto counts = [this](std::uint64_t pc, std::uint64_t size) {
    const std::uint64_t before = changes().number(pc);
    changes().count_beside_writers(pc, pc + size);
    return changes().number(pc) != before;
  };
  EXPECT_TRUE(counts(k_code, 64)) << "nothing counts yet";
  changes().count(k_code, k_code + 64);
  const std::uint64_t everywhere = changes().everywhere();
  EXPECT_TRUE(counts(k_code, 64));
  EXPECT_EQ(changes().everywhere(), everywhere);
}

/// Each change counts for all code where there is no memory for the counters.
TEST_F(CodeChangesTest, WithoutMemoryEveryChangeCountsEverywhere) {
  const auto run = [this] {
    constexpr rlimit k_none{0, 0};
    const bool is_limited = ::setrlimit(RLIMIT_AS, &k_none) == 0;
    const std::uint64_t before = changes().everywhere();
    const bool counts = counts_for(k_code, k_code, k_code + 64) && changes().everywhere() != before;
    changes().count_beside_writers(k_code, k_code + 64);
    ::_exit(is_limited && counts ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(counts_for(k_code, k_code, k_code + 64));
}

TEST_F(CodeChangesTest, CountersAreGivenBack) {
  changes().count(k_code, k_code + 64);
  const auto page = counters_at() / 4096 * 4096;
  unsigned char is_there = 0;
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(page), 4096, &is_there), 0);
  changes().release();
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(page), 4096, &is_there), -1);
}

/// A size that begins to count at an address makes its numbers larger; they never equal an earlier one.
TEST_F(CodeChangesTest, NumbersOnlyGrow) {
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> last(64);
  for (int i = 0; i < 50'000; ++i) {
    const std::uint64_t size = random() % (std::uint64_t{2} << (random() % 16)) + 1;
    const std::uint64_t start = k_code + random() % (1u << 16);
    changes().count(start, start + size);
    for (std::size_t n = 0; n < last.size(); ++n) {
      const std::uint64_t pc = k_code + 1024 * n;
      const std::uint64_t now = changes().number(pc);
      ASSERT_GE(now, last[n]);
      ASSERT_TRUE(now > last[n] || pc - start >= size) << "changed, not counted";
      last[n] = now;
    }
  }
}

/// 2^24 changes take a tenth of a second; the count of a stretch is one that a process reaches.
TEST_F(CodeChangesTest, NoNumberComesAgain) {
  changes().count(k_code, k_code + 64);
  const std::uint64_t counted = 1'000'000'007;
  have_changed(k_code, counted);
  for (const unsigned bits : {0u, 8u, 16u, 23u, 24u, 32u, 40u, 48u, 63u}) {
    have_changed_everywhere(5);
    const std::uint64_t before = changes().number(k_code), quiet = changes().number(k_code + (1u << 20));
    for (const std::uint64_t around : {0u, 1u, 2u}) {
      const std::uint64_t times = (std::uint64_t{1} << bits) + around - 1;
      if (times == 0) continue;
      have_changed_everywhere(5 + times);
      EXPECT_NE(changes().number(k_code + (1u << 20)), quiet) << times;
      // It does not come again either with as many changes of the stretch as fit into the same time, or any number up
      // to 2^31.
      const std::uint64_t missing = before - (changes().everywhere() + counted);
      if (bits <= 31) {
        EXPECT_GT(missing, std::uint64_t{1} << 31) << times;
      }
    }
  }
}

}  // namespace
}  // namespace jitunwind

// Kept knowledge of this process's code between walks, seen from outside. Changing a description in place is forbidden;
// here it distinguishes walks that look at it again from walks that do not.
#include <libunwind.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/libunwind/context_words.h"
#include "tests/support/pcs_from.h"

namespace jitunwind::test {
namespace {

/// A procedure without a frame whose description says how far its CFA is above SP, registered as long as it lives.
class Described {
 public:
  Described(unw_word_t start, std::size_t size) {
    region_.region.insn_count = static_cast<int>(size / arch_.unit);
    region_.region.op_count = 3;
    region_.region.op[0] = _U_dyn_op(UNW_DYN_ADD, 0, -1, UNW_REG_SP, 0);
    if (!arch_.ra_in_memory)
      region_.rest[0] = _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, -1, arch_.by_dwarf(arch_.ra)->libunwind, 0);
    info_.start_ip = start;
    info_.end_ip = start + size;
    info_.format = UNW_INFO_FORMAT_DYNAMIC;
    info_.u.pi.regions = &region_.region;
    say(1);
    _U_dyn_register(&info_);
  }
  ~Described() { _U_dyn_cancel(&info_); }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  /// Changes the description in place to so many words pushed behind the return address; kept knowledge of it is
  /// unchanged.
  void say(unsigned words) {
    const unw_word_t word = arch_.word_size;
    region_.region.op[0].val = -(word * words);
    if (arch_.ra_in_memory) return;
    region_.region.op[0].val -= word;
    region_.rest[0].val = word * words;
  }

 private:
  struct {
    unw_dyn_region_info_t region;
    unw_dyn_op_t rest[2];
  } region_{};
  const Arch& arch_ = *host_arch();
  unw_dyn_info_t info_{};
};

/// Code in which each byte may be a return address, on a stack that shows where a walk went.
class MadeStack {
 public:
  static constexpr std::size_t k_size = 1u << 20;
  MadeStack() : mapped_(::mmap(nullptr, 3 * k_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (std::size_t i = 0; i < stack_.size(); ++i) stack_[i] = static_cast<std::uintptr_t>(callers() + i);
  }
  ~MadeStack() { ::munmap(mapped_, 3 * k_size); }
  MadeStack(const MadeStack&) = delete;
  MadeStack& operator=(const MadeStack&) = delete;

  /// The address is a multiple of k_size.
  unw_word_t start() const { return (reinterpret_cast<std::uintptr_t>(mapped_) + k_size - 1) / k_size * k_size; }

  /// Returns how many words the code at that offset has pushed, as one step finds it.
  unsigned words_pushed_by_step(std::size_t offset) const {
    unw_context_t context = context_at(offset);
    unw_cursor_t cursor;
    EXPECT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), 0);
    EXPECT_GT(unw_step(&cursor), 0);
    unw_word_t ip = 0;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
    return static_cast<unsigned>(ip - callers());
  }
  /// Returns the number at the beginning. Walks of addresses, which keep rows in another way, find the same number.
  unsigned words_pushed() const {
    unw_context_t context = context_at(0);
    std::array<void*, 2> listed{};
    EXPECT_EQ(unw_backtrace2(listed.data(), 2, &context, UNW_INIT_SIGNAL_FRAME), 2);
    const unsigned pushed = words_pushed_by_step(0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(listed[1]), callers() + pushed);
    return pushed;
  }

 private:
  /// Code that nobody has described.
  unw_word_t callers() const { return start() + k_size; }
  unw_context_t context_at(std::size_t offset) const {
    unw_context_t context{};
    set_word(&context, k_pc, start() + offset);
    set_word(&context, UNW_REG_SP, reinterpret_cast<std::uintptr_t>(stack_.data()));
    return context;
  }

  void* mapped_;
  std::array<std::uintptr_t, 16> stack_;
};

class Caching : public testing::Test {
 protected:
  ~Caching() override { EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL), 0); }
  /// Returns whether a step uses what was kept, `kept`, after the description was changed.
  bool goes_by_what_it_kept(unsigned kept, unsigned said) {
    described.say(said);
    const unsigned pushed = stack.words_pushed();
    EXPECT_TRUE(pushed == kept || pushed == said) << pushed;
    return pushed == kept;
  }
  static void flush(unw_word_t lo, unw_word_t hi) { unw_flush_cache(unw_local_addr_space, lo, hi); }

  static constexpr std::size_t k_code = 64, k_apart = 4096;
  MadeStack stack;
  Described described{stack.start(), k_code};
  const Described neighbour{stack.start() + k_apart, k_code};
};

// covers: CA01 CA05
TEST_F(Caching, WhatIsKeptStaysUntilItsRangeIsFlushed) {
  const unw_word_t at = stack.start();
  EXPECT_EQ(stack.words_pushed(), 1u);
  EXPECT_TRUE(goes_by_what_it_kept(1, 2)) << "on by default";
  flush(at + k_apart, at + k_apart + k_code);
  flush(at, at);
  flush(at + 1, at);
  EXPECT_TRUE(goes_by_what_it_kept(1, 2)) << "other code was flushed";
  flush(at, at + k_code);
  EXPECT_FALSE(goes_by_what_it_kept(1, 2)) << "exactly this";
  EXPECT_TRUE(goes_by_what_it_kept(2, 3));
  flush(at, at + 1);
  EXPECT_FALSE(goes_by_what_it_kept(2, 3)) << "the address alone";
  EXPECT_TRUE(goes_by_what_it_kept(3, 4));
  flush(at - k_apart, at + k_apart);
  EXPECT_FALSE(goes_by_what_it_kept(3, 4)) << "more than this";
  EXPECT_TRUE(goes_by_what_it_kept(4, 5));
  flush(0, 0);
  EXPECT_FALSE(goes_by_what_it_kept(4, 5)) << "everything";
}

// covers: CA02 CA03 CA04
TEST_F(Caching, PoliciesSayWhetherAnythingIsKept) {
  unsigned said = 1;
  for (const auto policy : {UNW_CACHE_GLOBAL, UNW_CACHE_PER_THREAD}) {
    ASSERT_EQ(unw_set_caching_policy(unw_local_addr_space, policy), 0);
    EXPECT_EQ(stack.words_pushed(), said);
    EXPECT_TRUE(goes_by_what_it_kept(said, said + 1));
    ASSERT_EQ(unw_set_caching_policy(unw_local_addr_space, policy), 0);
    EXPECT_TRUE(goes_by_what_it_kept(said, said + 1)) << "the same policy again flushes nothing";
    ASSERT_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE), 0);
    EXPECT_FALSE(goes_by_what_it_kept(said, said + 1));
    EXPECT_FALSE(goes_by_what_it_kept(said + 1, said + 2)) << "nothing is kept";
    said += 2;
    ASSERT_EQ(unw_set_caching_policy(unw_local_addr_space, policy), 0);
    EXPECT_EQ(stack.words_pushed(), said) << "what was kept went with the policy before";
  }
  EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, static_cast<unw_caching_policy_t>(3)), -UNW_EINVAL);
}

// covers: CA06
TEST_F(Caching, SettingASizeFlushes) {
  EXPECT_EQ(stack.words_pushed(), 1u);
  EXPECT_TRUE(goes_by_what_it_kept(1, 2));
  EXPECT_EQ(unw_set_cache_size(unw_local_addr_space, 1000, 1), -UNW_EINVAL);
  EXPECT_TRUE(goes_by_what_it_kept(1, 2)) << "refused";
  ASSERT_EQ(unw_set_cache_size(unw_local_addr_space, 1000, 0), 0);
  EXPECT_FALSE(goes_by_what_it_kept(1, 2));
  for (const std::uint64_t wanted : {~std::uint64_t{0}, std::uint64_t{1} << 60, std::uint64_t{1} << 46}) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, SIZE_MAX));
    EXPECT_EQ(unw_set_cache_size(unw_local_addr_space, size, 0), -UNW_ENOMEM) << size;
  }
  EXPECT_TRUE(goes_by_what_it_kept(2, 2)) << "it goes on";
}

// covers: CA06 CA09
TEST(CachingOfMuchCode, HasRoomForAsManyRowsAsWereAskedFor) {
  constexpr std::size_t k_rows = 1u << 15, k_between = 8;
  static_assert(k_rows * k_between < MadeStack::k_size);
  const MadeStack stack;
  Described described(stack.start(), MadeStack::k_size);
  const auto step_all = [&](unsigned expected) {
    std::size_t as_expected = 0;
    for (std::size_t i = 0; i < k_rows; ++i) as_expected += stack.words_pushed_by_step(i * k_between) == expected;
    return as_expected;
  };
  EXPECT_EQ(step_all(1), k_rows);
  described.say(2);
  EXPECT_LT(step_all(1), k_rows / 2) << "without room the first are forgotten";
  ASSERT_EQ(unw_set_cache_size(unw_local_addr_space, k_rows, 0), 0);
  EXPECT_EQ(step_all(2), k_rows);
  described.say(1);
  EXPECT_EQ(step_all(2), k_rows) << "each of them was kept";
}

/// Other threads choose policies and sizes and flush meanwhile.
// covers: CA02 CA04 CA09 SF04
TEST(CachingByThreads, ChangesNoWalk) {
  unw_context_t context;
  unw_cursor_t start;
  unw_getcontext(&context);
  ASSERT_EQ(unw_init_local(&start, &context), 0);
  unw_cursor_t cursor = start;
  const std::vector<unw_word_t> expected = pcs_from(cursor);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> walks{0}, others{0};
  std::vector<std::thread> walkers;
  for (int i = 0; i < 2; ++i)
    walkers.emplace_back([&] {
      while (!stop) {
        unw_cursor_t own = start;
        std::size_t frames = 0;
        int moved = 1;
        for (unw_word_t ip = 0; moved > 0; moved = unw_step(&own), ++frames)
          if (unw_get_reg(&own, UNW_REG_IP, &ip) != 0 || frames >= expected.size() || ip != expected[frames]) ++others;
        others += moved != 0 || frames != expected.size();
        ++walks;
      }
    });
  for (std::size_t size = 1; size <= std::size_t{1} << 17; size *= 2) {
    EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE), 0);
    EXPECT_EQ(unw_set_cache_size(unw_local_addr_space, size, 0), 0);
    EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL), 0);
    const unsigned before = walks;
    while (walks < before + 20) unw_flush_cache(unw_local_addr_space, expected[1] - 1, expected[1]);
  }
  stop = true;
  for (std::thread& walker : walkers) walker.join();
  EXPECT_EQ(others, 0u) << "of " << walks;
}

}  // namespace
}  // namespace jitunwind::test

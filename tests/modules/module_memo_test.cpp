// Remembered modules: an answer always belongs to the key that was asked for.
#include "jitunwind/unwind_core/modules/module_memo_p.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace jitunwind::test {
namespace {

constexpr std::size_t k_more_than_fit = 3000;

LoadedObjectKey key_of(std::size_t number, Addr link_map = 0x1000) {
  const Addr begin = 0x7f00'0000'0000 + number * 0x5000;
  return {begin, begin + 0x4000, link_map + number, begin, begin + 0x3000, begin + 0x2000};
}
KeptParts parts_of(std::size_t number) {
  const auto n = static_cast<std::uint32_t>(number);
  return {{0x1000, 0x1000 + n}, {0x2000, 0x2000 + n}, {0x200, 0x214}, {0, 0x4000 + n}};
}
bool is_of(const KeptParts& parts, std::size_t number) {
  const KeptParts expected = parts_of(number);
  return parts.text.end == expected.text.end && parts.eh_segment.end == expected.eh_segment.end &&
         parts.whole.end == expected.whole.end;
}

TEST(ModuleMemoTest, RemembersNearlyAThousand) {
  static ModuleMemo memo;
  constexpr std::size_t k_modules = 500;
  KeptParts parts;
  for (std::size_t i = 0; i < k_modules; ++i) {
    EXPECT_FALSE(memo.find(key_of(i), parts));
    memo.keep(key_of(i), parts_of(i));
    ASSERT_TRUE(memo.find(key_of(i), parts) && is_of(parts, i)) << i;
  }
  std::size_t found = 0;
  for (std::size_t i = 0; i < k_modules; ++i) {
    if (!memo.find(key_of(i), parts)) continue;
    ++found;
    EXPECT_TRUE(is_of(parts, i));
  }
  EXPECT_GT(found, k_modules * 9 / 10);
}

TEST(ModuleMemoTest, NewOnesTakeThePlacesOfOlderOnes) {
  static ModuleMemo memo;
  KeptParts parts;
  std::size_t found = 0;
  for (std::size_t i = 0; i < k_more_than_fit; ++i) {
    memo.keep(key_of(i), parts_of(i));
    ASSERT_TRUE(memo.find(key_of(i), parts) && is_of(parts, i)) << i;
  }
  for (std::size_t i = 0; i < k_more_than_fit; ++i) {
    if (!memo.find(key_of(i), parts)) continue;
    ++found;
    EXPECT_TRUE(is_of(parts, i));
  }
  EXPECT_GT(found, 900u);
}

// dlclose() and dlopen() put another object at the same place.
TEST(ModuleMemoTest, AnotherOneAtTheSamePlaceIsNotTheSame) {
  static ModuleMemo memo;
  KeptParts parts;
  memo.keep(key_of(1), parts_of(1));
  EXPECT_FALSE(memo.find(key_of(1, 0x9000), parts));
  memo.keep(key_of(1, 0x9000), parts_of(2));
  ASSERT_TRUE(memo.find(key_of(1, 0x9000), parts));
  EXPECT_TRUE(is_of(parts, 2));
  EXPECT_FALSE(memo.find(key_of(1), parts));
}

TEST(ModuleMemoTest, ManyThreadsFindWhatIsRight) {
  static ModuleMemo memo;
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      KeptParts parts;
      for (std::size_t i = 0; i < 20000; ++i) {
        const std::size_t number = (i * 7 + t) % 1500;
        if (!memo.find(key_of(number), parts))
          memo.keep(key_of(number), parts_of(number));
        else if (!is_of(parts, number))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace jitunwind::test

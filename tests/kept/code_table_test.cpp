// The table of facts about code: what it finds, how it grows, which memory it touches.
#include "jitunwind/unwind_core/kept/code_table_p.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/kept/caller_rule_p.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "tests/support/emulated.h"

namespace jitunwind::test {
namespace {

CompactRow row_by(const SaveShapes& shapes, unsigned number, std::uint16_t cfa_words) {
  CompactRow row;
  shapes.row(number, cfa_words, row);
  return row;
}

/// Three words, of which all count.
struct Facts {
  std::uint64_t a = 0, b = 0, c = 0;
  std::uint64_t digest() const noexcept { return hash_with(hash_with(spread(a), b), c); }
  bool operator==(const Facts&) const = default;
};
using Rules = CodeTable<CallerRule>;
using FactsTable = CodeTable<Facts>;

CompactRow row_of(std::uint16_t cfa_words, std::uint8_t ra, std::uint8_t fp) {
  CompactRow row;
  row.cfa_words = cfa_words;
  row.slots[CompactLayout::k_return_address] = ra;
  row.slots[1] = fp;
  return row;
}
CallerRule rule_of(std::uint64_t number) {
  return CallerRule(row_of(static_cast<std::uint16_t>(number), 1, 2), RowOrigin::eh_frame, KeptBy::lasting, false, 1);
}

template <class Table>
typename Table::Found find(const Table& table, Addr at, std::uint64_t version) {
  return table.find(at, [&](const auto&) { return Table::cipher(version); });
}
/// Keeps a value as a walk does that has looked first, even if the address is met for the first time.
template <class Table>
void keep(Table& table, Addr at, std::uint64_t version, const typename Table::Value& value) {
  (void)table.keep(at, Table::cipher(version), value, find(table, at, version).number);
}

/// Walks ask for the entry of a link, which nobody may have written, and for address 0 when null was called.
TEST(CodeTable, HoldsNothingForAnyAddressInTheBeginning) {
  const auto table = std::make_unique<Rules>();
  const auto entries = table->entries();
  for (const Addr at : {Addr{0}, Addr{1}, Addr{4095}, ~Addr{0}})
    EXPECT_FALSE(entries.holds(0, entries.value(0), at, Rules::cipher(0))) << at;
}

TEST(CallerRule, SaysWhatTheRowSays) {
  for (const bool by_fp : {false, true}) {
    const CallerRule rule =
        CallerRule(row_of(0xfedc, 1, 17), RowOrigin::debug_frame, KeptBy::module, by_fp, 1).with_shape(1023);
    EXPECT_EQ(rule.cfa_offset(), CompactRow::k_word * 0xfedc);
    EXPECT_TRUE(rule.saves_frame_pointer());
    EXPECT_EQ(rule.frame_pointer_below_cfa(), CompactRow::k_word * 17);
    EXPECT_EQ(rule.shape(), 1023u);
    EXPECT_EQ(rule.origin(), RowOrigin::debug_frame);
    const CallerRule same_fp(row_of(2, 1, 0), RowOrigin::dyn_table, KeptBy::lasting, by_fp, 1);
    EXPECT_FALSE(same_fp.saves_frame_pointer());
    EXPECT_EQ(same_fp.frame_pointer_below_cfa(), CompactRow::k_word) << "where the return address is";
    EXPECT_EQ(same_fp.kept_by(), KeptBy::lasting);
    EXPECT_EQ(rule.base_is_frame_pointer(), by_fp);
    EXPECT_EQ(rule.kept_by(), KeptBy::module);
    EXPECT_EQ(rule.kind(), CallerRule::Kind::compact);
    const CallerRule linked = rule.with_link(8191).with_link(4097);
    EXPECT_EQ(linked.linked(17), 4097u);
    EXPECT_EQ(rule.with_link(0x50003).linked(0x5fff0), 0x50003u);
    EXPECT_EQ(linked.with_link(0).word(), rule.word());
    EXPECT_EQ(linked.digest(), rule.digest());
    const CallerRule handled = linked.with(CallerRule::Handler::known).with(CallerRule::Handler::none);
    EXPECT_EQ(handled.handler(), CallerRule::Handler::none);
    EXPECT_EQ(handled.with(CallerRule::Handler::unknown).word(), linked.word());
    EXPECT_NE(handled.digest(), rule.digest());
  }
  const CallerRule realigned(KeptBy::lasting, CallerRule::Kind::realigned, 255);
  EXPECT_EQ(realigned.kind(), CallerRule::Kind::realigned);
  EXPECT_EQ(realigned.kept_by(), KeptBy::lasting);
  EXPECT_EQ(realigned.cfa_below_frame_pointer(), CompactRow::k_word * 255);
  EXPECT_EQ(realigned.cfa_offset(), 0u);
  EXPECT_EQ(CallerRule().kept_by(), KeptBy::nothing);
}

TEST(SaveShapes, OneNumberForEachShapeWhateverTheOffset) {
  const auto shapes = std::make_unique<SaveShapes>();
  std::map<unsigned, std::uint8_t> numbers;
  for (unsigned fp = 0; fp < 250; ++fp) {
    const CompactRow row = row_of(static_cast<std::uint16_t>(3 * fp), 1, static_cast<std::uint8_t>(fp));
    const unsigned number = shapes->number_of(row);
    ASSERT_NE(number, 0u);
    ASSERT_TRUE(numbers.emplace(number, fp).second);
    EXPECT_EQ(row_by(*shapes, number, row.cfa_words), row);
    EXPECT_EQ(shapes->number_of(row_of(60000, 1, static_cast<std::uint8_t>(fp))), number);
  }
}

TEST(SaveShapes, OnceThereIsNoRoomOthersHaveNone) {
  const auto shapes = std::make_unique<SaveShapes>();
  unsigned with_number = 0;
  std::map<unsigned, CompactRow> known;
  for (unsigned i = 0; i < 4 * SaveShapes::k_most; ++i) {
    CompactRow row = row_of(2, 1, static_cast<std::uint8_t>(i));
    row.slots[2] = static_cast<std::uint8_t>(i / 256 + 1);
    if (const unsigned number = shapes->number_of(row); number != 0) known[number] = row;
    with_number += shapes->number_of(row) != 0;
  }
  EXPECT_LE(with_number, SaveShapes::k_most);
  EXPECT_GT(with_number, SaveShapes::k_most * 3 / 4);
  for (const auto& [number, row] : known) EXPECT_EQ(row_by(*shapes, number, 2), row);
}

/// The entry is not found under any other version of its address, however near the versions are.
TEST(CodeTable, FindsNothingUnderAnotherVersion) {
  const auto table = std::make_unique<Rules>();
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    const Addr at = 0x7f0000000000 + random() % (1u << 30);
    const std::uint64_t version = i % 2 == 0 ? random() % 100 : random();
    const CallerRule rule = rule_of(random() % 64 + 2);
    keep(*table, at, version, rule);
    const auto found = find(*table, at, version);
    ASSERT_TRUE(found.holds);
    table->change(found.number,
                  [&](CallerRule now) { return now.with_link(static_cast<std::uint32_t>(random() % 8192)); });
    const auto again = find(*table, at, version);
    ASSERT_TRUE(again.holds && again.number == found.number) << "a link is no part of the rule";
    ASSERT_EQ(again.value.with_link(0).word(), rule.word());
    for (std::uint64_t other = 1; other < 300; ++other) {
      ASSERT_FALSE(find(*table, at, version + other).holds);
      ASSERT_FALSE(find(*table, at, version ^ other << 40).holds);
    }
    ASSERT_FALSE(find(*table, at + 1, version).holds);
  }
}

/// A stale entry is found, too, so that its place is used again: replaced code takes no more room.
TEST(CodeTable, KeepsAnAddressInOnePlace) {
  const auto table = std::make_unique<Rules>();
  keep(*table, 0x1000, 1, rule_of(3));
  const auto first = find(*table, 0x1000, 1);
  for (std::uint64_t version = 2; version < 1000; ++version) {
    const auto old = find(*table, 0x1000, version);
    ASSERT_FALSE(old.holds);
    ASSERT_EQ(old.number, first.number);
    keep(*table, 0x1000, version, rule_of(version));
    ASSERT_EQ(find(*table, 0x1000, version).value.word(), rule_of(version).word());
  }
  EXPECT_EQ(table->size(), 1u);
}

/// Behind the first page, an address that is met once is not kept, except for some.
TEST(CodeTable, KeepsWhatIsMetAgain) {
  const auto table = std::make_unique<Rules>();
  constexpr std::size_t k_addresses = 6000, k_of_page = 204;
  const auto at = [](std::size_t i) { return 0x555500000000 + 997 * i; };
  for (const std::size_t time : {1u, 2u}) {
    for (std::size_t i = 0; i < k_addresses; ++i) {
      const auto before = find(*table, at(i), 1);
      if (!before.holds && table->wants(at(i), before.number)) keep(*table, at(i), 1, rule_of(i));
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < k_addresses; ++i) found += find(*table, at(i), 1).holds;
    if (time == 1) {
      EXPECT_LT(found, k_of_page + k_addresses / 6);
    } else {
      EXPECT_GT(found, k_addresses * 99 / 100);
    }
    for (std::size_t i = 0; i < k_of_page; ++i) EXPECT_TRUE(find(*table, at(i), 1).holds) << i;
  }
}

/// Counts the pages of the table's memory that were ever written to.
template <class Table>
std::size_t resident_pages(const Table& table) {
  constexpr std::size_t k_page = 4096;
  std::vector<unsigned char> resident((sizeof table + k_page - 1) / k_page);
  if (::mincore(const_cast<Table*>(&table), sizeof table, resident.data()) != 0) return 0;
  std::size_t pages = 0;
  for (const unsigned char page : resident) pages += page & 1;
  return pages;
}

/// The table takes at most twice the bytes of its contents, however scattered the code is, besides the pages that it
/// has from the beginning.
template <class Table, class ValueOf>
void expect_memory_in_proportion(ValueOf value_of) {
  constexpr std::size_t k_bytes = sizeof(typename Table::Value) + sizeof(std::uint64_t);
  constexpr std::size_t k_to_begin_with = 3;
  void* const memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::madvise(memory, sizeof(Table), MADV_NOHUGEPAGE), 0);
  auto* const table = static_cast<Table*>(memory);  // zeros, as its constant initialisation is
  table->touch();
  EXPECT_EQ(resident_pages(*table), k_to_begin_with);
  std::mt19937_64 random(1);
  for (std::size_t kept = 0; kept < Table::k_size;) {
    const Addr at = 0x7f0000000000 + random() % (std::uint64_t{1} << 36);
    if (find(*table, at, 1).number != Table::k_nowhere) continue;
    keep(*table, at, 1, value_of(++kept));
    ASSERT_EQ(table->size(), kept);
    if (kept % 50 != 0) continue;
    ASSERT_LE(resident_pages(*table) - k_to_begin_with, 2 * kept * k_bytes / 4096) << kept;
  }
  ::munmap(memory, sizeof(Table));
}
TEST(CodeTable, TouchesMemoryInProportionToWhatItKeeps) {
  expect_memory_in_proportion<Rules>([](std::size_t i) { return rule_of(i); });
  expect_memory_in_proportion<FactsTable>([](std::size_t i) { return Facts{i, i, i}; });
}

TEST(CodeTable, TheOldestGiveWay) {
  const auto table = std::make_unique<Rules>();
  constexpr std::size_t k_all = 3 * Rules::k_size;
  const auto at = [](std::size_t i) { return 0x400000 + 16 * i; };
  std::size_t found_at_once = 0, found_later = 0;
  for (std::size_t i = 0; i < k_all; ++i) {
    keep(*table, at(i), 1, rule_of(i % 60000));
    const auto found = find(*table, at(i), 1);
    found_at_once += found.holds && found.value.word() == rule_of(i % 60000).word();
  }
  EXPECT_GT(found_at_once, k_all * 99 / 100);
  for (std::size_t i = k_all - Rules::k_size / 2; i < k_all; ++i) found_later += find(*table, at(i), 1).holds;
  EXPECT_GT(found_later, Rules::k_size / 2 * 95 / 100);
  for (std::size_t i = 0; i < Rules::k_size; ++i) EXPECT_FALSE(find(*table, at(i), 1).holds) << i;
  EXPECT_EQ(table->size(), Rules::k_size);
}

/// A cleared table is as it was when it was new: it keeps the same, and begins to be choosy again behind its first
/// page.
TEST(CodeTable, IsNewAfterItWasCleared) {
  const auto table = std::make_unique<Rules>();
  const auto at = [](std::size_t i) { return 0x400000 + 16 * i; };
  const auto fill = [&] {
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < 1000; ++i)
      if (table->wants(at(i), find(*table, at(i), 1).number) && ++wanted != 0) keep(*table, at(i), 1, rule_of(i));
    return wanted;
  };
  const std::size_t wanted = fill();
  EXPECT_LT(wanted, 1000u);
  EXPECT_GT(fill(), wanted) << "what is met again";
  for (std::size_t i = 0; i < 2 * Rules::k_size; ++i) keep(*table, at(i), 1, rule_of(i % 60000));
  EXPECT_TRUE(table->clear());
  EXPECT_EQ(table->size(), 0u);
  for (std::size_t i = 0; i < 2 * Rules::k_size; ++i) {
    EXPECT_EQ(find(*table, at(i), 1).number, Rules::k_nowhere) << i;
    const auto number = static_cast<Rules::Number>(i);
    const Rules::Entries entries = table->entries();
    if (entries.in_bounds(number) != number) continue;
    EXPECT_FALSE(entries.holds(number, entries.value(number), at(i), Rules::cipher(1))) << i;
  }
  EXPECT_EQ(fill(), wanted);
  EXPECT_TRUE(table->reserve(2 * Rules::k_size));
  EXPECT_FALSE(table->clear()) << "memory that is never given back";
}

TEST(SaveShapes, HasNoShapesAfterItWasCleared) {
  const auto shapes = std::make_unique<SaveShapes>();
  for (std::uint8_t fp = 0; fp < 100; ++fp) EXPECT_EQ(shapes->number_of(row_of(1, 1, fp)), fp + 1u);
  shapes->clear();
  for (std::uint8_t fp = 100; fp-- != 0;) EXPECT_EQ(shapes->number_of(row_of(1, 1, fp)), 100u - fp);
}

TEST(CodeTable, GrowsToWhatIsAskedFor) {
  const auto table = std::make_unique<Rules>();
  constexpr std::size_t k_rows = 100'000;
  const auto at = [](std::size_t i) { return 0x10000 + 16 * i; };
  const auto found = [&] {
    std::size_t all = 0;
    for (std::size_t i = 1; i <= k_rows; ++i) {
      const auto f = find(*table, at(i), 1);
      all += f.holds && f.value.word() == rule_of(i % 60000).word();
    }
    return all;
  };
  const auto keep_all = [&] {
    for (std::size_t i = 1; i <= k_rows; ++i) keep(*table, at(i), 1, rule_of(i % 60000));
  };
  EXPECT_TRUE(table->reserve(1));
  keep_all();
  const std::size_t small = found();
  EXPECT_LE(small, Rules::k_size);
  EXPECT_TRUE(table->reserve(k_rows));
  EXPECT_GT(found(), small * 97 / 100) << "what was kept stays";
  keep_all();
  EXPECT_GT(found(), k_rows * 97 / 100);
  EXPECT_TRUE(table->reserve(k_rows / 2)) << "it is larger";
  for (const std::size_t size :
       {~std::size_t{0}, ~std::size_t{0} / 8, (~std::size_t{0} / 8 + 1) | Rules::k_most, Rules::k_most + 1})
    EXPECT_FALSE(table->reserve(size)) << size;
  EXPECT_GT(found(), k_rows * 97 / 100);
  EXPECT_TRUE(table->reserve(1'000'000));
  EXPECT_GT(found(), k_rows * 95 / 100);
}

// covers: CA09
TEST(CodeTable, GrowsWhileItIsUsed) {
  const auto table = std::make_unique<FactsTable>();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> found{0};
  const auto use = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t number = 1 + random() % 200;
      const auto known = find(*table, 64 * number, 1);
      if (known.holds) ++found;
      if (known.holds && !(known.value == Facts{number, number, number})) ++wrong;
      if (!known.holds) keep(*table, 64 * number, 1, {number, number, number});
    }
  };
  const auto grow = [&] {
    for (std::size_t size = FactsTable::k_size + 1; size <= 1'000'000; size = size * 3 / 2)
      EXPECT_TRUE(table->reserve(size));
  };
  std::thread a(use, 1), b(use, 2), c(grow), d(grow);
  c.join(), d.join();
  while (found < 1000) std::this_thread::yield();
  stop = true;
  a.join(), b.join();
  EXPECT_EQ(wrong, 0u);
}

FactsTable* g_interrupted_table = nullptr;
std::atomic<bool> g_is_filled{false};

/// Keeps more entries than there is room for.
void fill(FactsTable& table, Addr from) {
  for (Addr at = from; at < from + 3 * FactsTable::k_size; ++at) keep(table, at, 1, {at, 1, at});
}

/// Walks in signal handlers keep their results, too. If a handler fills the table while the interrupted thread grows
/// the index, that thread gets an index that has to grow once more, and more turns than entries.
TEST(CodeTable, IsFilledByAHandlerWhileItsIndexGrows) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    fill(*g_interrupted_table, 0x100000);
    g_is_filled = true;
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t self = ::pthread_self();
  constexpr std::size_t k_rounds = repetitions(200);
  for (std::size_t round = 0; round < k_rounds; ++round) {
    const auto table = std::make_unique<FactsTable>();
    g_interrupted_table = table.get();
    g_is_filled = false;
    std::atomic<bool> has_begun{false};
    std::thread interrupter([&] {
      while (!has_begun.load()) continue;
      for (std::atomic<std::size_t> spent{0}; spent < 20'000 / k_rounds * round;) ++spent;
      ::pthread_kill(self, SIGUSR1);
    });
    has_begun = true;
    fill(*table, 0x1000);
    interrupter.join();
    while (!g_is_filled) std::this_thread::yield();
    fill(*table, 0x1000);
    std::size_t wrong = 0;
    for (const Addr from : {Addr{0x1000}, Addr{0x100000}})
      for (Addr at = from; at < from + 3 * FactsTable::k_size; ++at)
        if (const auto known = find(*table, at, 1); known.holds && !(known.value == Facts{at, 1, at})) ++wrong;
    ASSERT_EQ(wrong, 0u);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

/// Writers that overwrite each other's words leave entries that no reader accepts: each address has a value that
/// depends on it. There are more addresses than entries.
template <class Table, class ValueOf>
void expect_whole_values(ValueOf value_of) {
  const auto table = std::make_unique<Table>();
  std::atomic<std::size_t> found{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60'000; ++i) {
        const Addr at = 0x555500000000 + random() % (i % 3 == 0 ? 12 : 3 * Table::k_size);
        const std::uint64_t version = random() % 3;
        const auto before = find(*table, at, version);
        if (before.holds) ++found;
        if (before.holds && before.value.digest() != value_of(at, version).digest()) ++wrong;
        if (i % 2 == 0) (void)table->keep(at, Table::cipher(version), value_of(at, version), before.number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 1000u);
}
TEST(CodeTable, IsReadWhileItIsWritten) {
  expect_whole_values<Rules>([](Addr at, std::uint64_t version) { return rule_of((at * 7 + version) % 60000); });
  expect_whole_values<FactsTable>([](Addr at, std::uint64_t version) { return Facts{at, version, at + version}; });
}

}  // namespace
}  // namespace jitunwind::test

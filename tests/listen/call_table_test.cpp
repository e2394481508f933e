// The table of calls of __register_frame by itself, compared with a map.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "jitunwind/adapters/listen/frames/told_calls_p.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind::test {
namespace {

const void* address(std::uintptr_t at) { return reinterpret_cast<const void*>(at); }

struct Table {
  ToldMemory memory;
  ToldCalls calls;

  ToldCall lone() { return ToldCall(memory.take_lone()); }
  ToldCall block() { return ToldCall(memory.take(1)); }
  void give_back(ToldCall call) {
    if (call.is_lone())
      memory.give_back(call.lone());
    else
      memory.give_back(call.block());
  }
};

/// The calls of each address, the latest one last.
using Model = std::map<std::uintptr_t, std::vector<ToldCall>>;

void expect_same(const Table& table, const Model& model) {
  for (const auto& [begin, calls] : model) {
    const ToldCall found = table.calls.find_call(address(begin));
    ASSERT_TRUE(found == (calls.empty() ? ToldCall() : calls.back())) << std::hex << begin;
  }
}

void put_or_take(Table& table, Model& model, std::uintptr_t begin, unsigned choice) {
  std::vector<ToldCall>& calls = model[begin];
  if (choice % 2 == 0) {
    const ToldCall call = calls.empty() && choice % 8 != 0 ? table.lone() : table.block();
    ASSERT_TRUE(table.calls.put(address(begin), call));
    calls.push_back(call);
  } else {
    const ToldCall taken = table.calls.take(address(begin));
    ASSERT_TRUE(taken == (calls.empty() ? ToldCall() : calls.back()));
    if (calls.empty()) return;
    calls.pop_back();
    table.give_back(taken);
  }
}

// covers: LS01
TEST(CallTable, AnswersAsAMapDoes) {
  const auto owned = std::make_unique<Table>();
  Table& table = *owned;
  Model model;
  std::mt19937 random(1);
  std::vector<std::uintptr_t> begins;
  for (const unsigned most : {20u, 800u, 4000u, 70'000u}) {
    // Hashes of random addresses may begin alike, those of regular ones do not.
    while (begins.size() < most) begins.push_back(16 * (random() >> 4) + 16);
    for (unsigned i = 0; i < 4 * most; ++i)
      put_or_take(table, model, begins[random() % most], static_cast<unsigned>(random()));
    expect_same(table, model);
  }
  for (auto& [begin, calls] : model)
    while (!calls.empty()) put_or_take(table, model, begin, 1);
  expect_same(table, model);
}

/// Entries whose home is the last place go on from the first one, and move back when others are removed.
TEST(CallTable, FindsWhatHasNoRoomAtItsHome) {
  constexpr unsigned k_places = 8;  // as few as there are at first; bits
  std::vector<std::uintptr_t> alike;
  for (std::uintptr_t begin = 0x10000; alike.size() < 60; begin += 16)
    if (table_place(begin, k_places) >= 253) alike.push_back(begin);
  const auto owned = std::make_unique<Table>();
  Table& table = *owned;
  Model model;
  for (const std::uintptr_t begin : alike) put_or_take(table, model, begin, 2);
  expect_same(table, model);
  std::mt19937 random(2);
  for (int i = 0; i < 20'000; ++i) {
    put_or_take(table, model, alike[random() % alike.size()], static_cast<unsigned>(random()));
    if (i % 500 == 0) expect_same(table, model);
  }
}

/// Each round visits all of them once.
TEST(CallTable, GoesRound) {
  const auto owned = std::make_unique<Table>();
  Table& table = *owned;
  std::map<unw_dyn_info_t*, int> seen;
  for (std::uintptr_t i = 0; i < 3000; ++i) {
    const ToldCall call = table.lone();
    ASSERT_TRUE(table.calls.put(address(0x10000 + 64 * i), call));
    seen[call.lone()] = 0;
  }
  std::size_t place = 0;
  for (std::size_t i = 0; i < 2 * table.calls.round(); ++i)
    if (const ToldCall call = table.calls.next(place)) ++seen[call.lone()];
  for (const auto& [lone, times] : seen) EXPECT_GE(times, 1);
}

}  // namespace
}  // namespace jitunwind::test

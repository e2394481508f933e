// The changes of statistics() from one event to the next.
#include "jitunwind/sdk/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/diagnostics/unknown_frame.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

template <class Through>
void walk_through(const Through& frame) {
  frame(
      [](void*) -> void* {
        for (const Frame& each : walk_here(Guesses::bold)) (void)each;
        return nullptr;
      },
      nullptr);
}

void list_through(const JitFrame& frame) {
  frame(
      [](void*) -> void* {
        std::array<void*, 64> addresses;
        (void)backtrace(addresses);
        return nullptr;
      },
      nullptr);
}

/// Returns the statistics after each of some events, all from one place in the code.
template <class Event>
std::vector<Statistics> after_each(std::size_t times, Event event) {
  std::vector<Statistics> all{statistics()};
  for (std::size_t i = 0; i < times; ++i) {
    event();
    all.push_back(statistics());
  }
  return all;
}

TEST(Statistics, AColdWalkMissesAndAWarmOneDoesNot) {
  const JitFrame frame;
  const auto all = after_each(3, [&] { walk_through(frame); });
  EXPECT_GE(all[1].rows.misses, all[0].rows.misses + 1);
  EXPECT_GE(all[1].rows_kept, all[0].rows_kept + 1);
  EXPECT_GE(all[1].rows_in_table, 1u);
  EXPECT_EQ(all[3].rows.misses, all[1].rows.misses);
  EXPECT_EQ(all[3].rows_kept, all[1].rows_kept);
  EXPECT_EQ(all[3].rows.hits > all[2].rows.hits, all[3].counts_hits) << "hits are counted where that was asked for";
}

TEST(Statistics, WalksOfAddressesUseTheSameRows) {
  const JitFrame frame;
  const auto all = after_each(8, [&] { list_through(frame); });
  EXPECT_GE(all[1].rows.misses, all[0].rows.misses + 1);
  const Statistics& before = all[7];
  const Statistics& after = all[8];
  EXPECT_EQ(after.rows.misses, before.rows.misses);
  EXPECT_EQ(after.walks_of_addresses.misses, before.walks_of_addresses.misses);
  EXPECT_EQ(after.walks_of_addresses.hits > before.walks_of_addresses.hits, after.counts_hits);
}

/// The last frame's row, which says that there is no caller, needs no cursor, either.
TEST(Statistics, NoWalkOfAddressesThroughRowsNeedsACursor) {
  const JitFrame frame;
  const auto all = after_each(1, [&] { list_through(frame); });
  EXPECT_GE(all[1].rows.misses, all[0].rows.misses + 1);
  EXPECT_EQ(all[1].walks_of_addresses.misses, all[0].walks_of_addresses.misses);
}

TEST(Statistics, SayWhyRowsAreNotKept) {
  const JitFrame reads_its_cfa("cfa=[rsp+8] ra=[cfa-8]");
  const Statistics before = statistics();
  walk_through(reads_its_cfa);
  const Statistics after = statistics();
  EXPECT_GE(after.rows_not_compact, before.rows_not_compact + 1);
  EXPECT_EQ(after.rows.refusals, after.rows_not_compact + after.rows_of_more + after.rows_met_once);

  const UnknownFrame unknown;
  walk_through(unknown);
  EXPECT_GE(statistics().guesses, after.guesses + 1);
}

TEST(Statistics, CountUnknownCode) {
  const UnknownFrame unknown;
  const auto all = after_each(8, [&] { walk_through(unknown); });
  EXPECT_GE(all.back().unknown_code.misses, all.front().unknown_code.misses + 1);
  // Knowledge of unknown code holds for a moment, which does not include all walks.
  EXPECT_EQ(all.back().unknown_code.hits > all.front().unknown_code.hits, all.back().counts_hits);
}

TEST(Statistics, CountFilesOfModules) {
  const auto all = after_each(2, [] {
    std::array<char, 64> name{};
    ProcedureName found;
    EXPECT_TRUE(
        find_local_name(CodeAddress::interrupted(reinterpret_cast<std::uintptr_t>(&list_through)), name, found));
  });
  EXPECT_GE(all[1].module_files.misses, 1u);
  EXPECT_EQ(all[2].module_files.misses, all[1].module_files.misses);
  EXPECT_EQ(all[2].module_files.refusals, all[0].module_files.refusals);
  EXPECT_EQ(all[2].module_files.hits > all[1].module_files.hits, all[2].counts_hits);
}

TEST(Statistics, CountFrameShapes) {
  constexpr const char* k_row = "cfa=rsp+4088 ra=[cfa-8]";  // nobody else's
  const Statistics before = statistics();
  const JitFrame one(k_row);
  const Statistics between = statistics();
  EXPECT_EQ(between.frame_shapes.misses, before.frame_shapes.misses + 1);
  const JitFrame other(k_row);
  EXPECT_EQ(statistics().frame_shapes.misses, between.frame_shapes.misses);
  EXPECT_EQ(statistics().frame_shapes.hits, between.frame_shapes.hits + 1);
}

TEST(Statistics, CountChangesOfTheRegistry) {
  const Statistics before = statistics();
  std::array<unw_dyn_info_t, 3> all{};
  std::array<unw_dyn_info_t*, 3> pointers{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].start_ip = 0x1000 + 0x100 * i;
    all[i].end_ip = all[i].start_ip + 0x100;
    pointers[i] = &all[i];
  }
  ASSERT_TRUE(register_procedures(pointers));
  EXPECT_EQ(statistics().registered, before.registered + 3);
  EXPECT_GT(statistics().index_bytes, 0u);
  EXPECT_GE(statistics().registry_bytes, statistics().index_bytes);
  ASSERT_TRUE(cancel_procedure(pointers[0]));
  ASSERT_FALSE(cancel_procedure(pointers[0]));
  ASSERT_TRUE(retire_procedures(std::span(pointers).subspan(1)));
  const Statistics after = statistics();
  EXPECT_EQ(after.registrations, before.registrations + 3);
  EXPECT_EQ(after.cancelled, before.cancelled + 1);
  EXPECT_EQ(after.retired, before.retired + 2);
  EXPECT_EQ(after.registry_refusals, before.registry_refusals + 1);
  EXPECT_EQ(after.registered, before.registered);
}

/// Each field has a line, and no two lines are the same.
TEST(Statistics, AreText) {
  Statistics statistics;
  const std::string nothing = statistics.text();
  EXPECT_NE(nothing.find("hits are not counted"), std::string::npos);
  statistics.counts_hits = true;
  statistics.rows = {1001, 1002, 1003};
  statistics.index_bytes = 1004;
  statistics.fdes = {1005, 1006, 1007};
  const std::string text = statistics.text();
  EXPECT_NE(text.find("rows: 1001 hits, 1002 misses, 1003 refusals\n"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes of the index: 1004\n"), std::string::npos);
  EXPECT_NE(text.find("FDEs: 1005 hits, 1006 misses, 1007 refusals\n"), std::string::npos);
  EXPECT_EQ(text.find("not counted"), std::string::npos);
}

}  // namespace
}  // namespace jitunwind::test

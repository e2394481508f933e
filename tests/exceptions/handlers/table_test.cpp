// The table that a builder makes of call sites, read by another reader of such tables; refusals; the table's lifetime.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "tests/exceptions/handlers/lsda_decoder.h"

/// Only the function's address is used.
extern "C" int __gxx_personality_v0(...);

namespace jitunwind::test {
namespace {

using namespace x86_64;

Builder framed() { return describe("framed").push({0, 1}, rbx).pop({-2, -1}, rbx); }

std::string table_of(const Builder& builder) {
  const auto built = builder.build();
  if (!built) return built.error().text();
  const auto& table = built->handlers()->table;
  EXPECT_EQ(built->lsda(), reinterpret_cast<std::uintptr_t>(table.data()));
  return decode_lsda(table.data(), table.size()).text();
}

// covers: DY21
TEST(HandlerTable, HasTypesInTheOrderTheyAreTried) {
  EXPECT_EQ(table_of(framed()
                         .size(64)
                         .call_site({4, 6}, 30)
                         .catches(typeid(std::runtime_error))
                         .catches(typeid(std::logic_error))
                         .call_site({10, 12}, 40)
                         .catches(typeid(std::logic_error))
                         .catches_all()),
            "0..4\n"
            "4..6 -> 30 [1 St13runtime_error] [2 St11logic_error]\n"
            "6..10\n"
            "10..12 -> 40 [2 St11logic_error] [3 ...]\n"
            "12..64\n");
}

TEST(HandlerTable, HasCleanups) {
  EXPECT_EQ(table_of(framed().size(64).call_site({4, 6}, 30)), "0..4\n4..6 -> 30\n6..64\n");
  EXPECT_EQ(table_of(framed().size(64).call_site({4, 6}, 30).cleans_up()), "0..4\n4..6 -> 30\n6..64\n");
  EXPECT_EQ(table_of(framed().size(64).call_site({0, 64}, 30).catches(typeid(int)).cleans_up()),
            "0..64 -> 30 [1 i] [0]\n");
}

TEST(HandlerTable, HasExceptionSpecifications) {
  EXPECT_EQ(table_of(framed()
                         .size(64)
                         .call_site({0, 6}, 30)
                         .allows({&typeid(int), &typeid(long)})
                         .call_site({6, 64}, 40)
                         .allows({})
                         .catches(typeid(long))),
            "0..6 -> 30 [-1 i l]\n6..64 -> 40 [-4] [2 l]\n");
}

TEST(HandlerTable, LeavesOutWhatTerminates) {
  EXPECT_EQ(table_of(framed().size(64).terminates({4, 6}).call_site({6, 8}, 30)), "0..4\n6..8 -> 30\n8..64\n");
  EXPECT_EQ(table_of(framed().size(64).terminates({0, 64})), "");
}

TEST(HandlerTable, IsSortedWhateverTheOrderOfSites) {
  const auto site = [](Builder& b, int i) { b.call_site({4 * i, 4 * i + 2}, 40 + i).catches(typeid(int)); };
  Builder ascending = framed().size(64), descending = framed().size(64);
  for (int i = 0; i < 5; ++i) site(ascending, i), site(descending, 4 - i);
  EXPECT_EQ(table_of(ascending), table_of(descending));
  EXPECT_EQ(table_of(ascending),
            "0..2 -> 40 [1 i]\n2..4\n4..6 -> 41 [1 i]\n6..8\n8..10 -> 42 [1 i]\n10..12\n12..14 -> 43 [1 i]\n14..16\n"
            "16..18 -> 44 [1 i]\n18..64\n");
}

TEST(HandlerTable, NumbersTypesWhenTheyAreFirstNamed) {
  Builder b = framed().size(64);
  EXPECT_EQ(b.selector(typeid(long)), 1);
  EXPECT_EQ(b.selector(typeid(int)), 2);
  EXPECT_EQ(b.selector(nullptr), 3);
  EXPECT_EQ(b.selector(typeid(long)), 1);
  EXPECT_EQ(table_of(b.call_site({0, 64}, 30).catches(typeid(int)).catches_all()), "0..64 -> 30 [2 i] [3 ...]\n");
}

/// The table has numbers of two and more bytes: distances, types, filters.
TEST(HandlerTable, MayBeLarge) {
  Builder b = framed();
  for (int i = 0; i < 1000; ++i) b.call_site({10 * i, 10 * i + 5}, 100'000 + i).catches(typeid(int)).cleans_up();
  for (int i = 0; i < 200; ++i) b.call_site({20'000 + i, 20'001 + i}, 9).allows({&typeid(int), &typeid(long)});
  const auto built = b.build();
  ASSERT_TRUE(built) << built.error().text();
  const DecodedTable table = decode_lsda(built->handlers()->table.data(), built->handlers()->table.size());
  ASSERT_EQ(table.sites.size(), 1000 + 999 + 1 + 200 + 1u);
  EXPECT_EQ(table.sites[1998], (DecodedSite{9990, 5, 100'999, {1, 0}}));
  EXPECT_EQ(table.sites[2199], (DecodedSite{20'199, 1, 9, {-1 - 3 * 199}}));
  EXPECT_EQ(table.lists.at(-1 - 3 * 199), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_GE(table.sites.back().begin + table.sites.back().length, std::uint64_t{1} << 31) << "any size";
}

TEST(HandlerTable, IsTheSameForEveryProcedureOfADescription) {
  const auto built = framed().call_site({4, 6}, 30).catches(typeid(int)).build();
  ASSERT_TRUE(built) << built.error().text();
  EXPECT_EQ(built->personality(), reinterpret_cast<std::uintptr_t>(&__gxx_personality_v0));
  EXPECT_EQ(built->min_size(), 31u);
  constexpr Addr k_code = 0x7b00'0000'0000;
  const auto one = register_code(*built, Code{.start = k_code, .size = 64});
  const auto two = register_code(*built, Code{.start = k_code + 64, .size = 80, .name = "other"});
  ASSERT_TRUE(one && two);
  EXPECT_EQ(lsda_extension(*one->info()).lsda, built->lsda());
  EXPECT_EQ(lsda_extension(*two->info()).lsda, built->lsda());
  EXPECT_EQ(one->info()->u.pi.handler, built->personality());
  // The shape equals that of procedures without handlers.
  EXPECT_EQ(built->shape(), framed().build()->shape());

  const auto short_one = register_code(*built, Code{.start = k_code + 256, .size = 30});
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error().code, ErrorCode::e_landing_pad);
}

class Lifetime : public testing::TestWithParam<bool> {};

/// The parameter chooses a description by rows or by directives.
TEST_P(Lifetime, TheTableLivesAsLongAsItsLastProcedure) {
  constexpr Addr k_code = 0x7b00'0000'0000;
  Builder b = GetParam() ? describe("rows").row_at(0, "cfa=rsp+8 ra=[cfa-8]") : framed();
  auto built = std::make_unique<Description>(b.call_site({4, 6}, 30).build().value());
  const HandlersRef table = built->handlers();
  const auto live = [&](Addr at) { return register_code(*built, Code{.start = at, .size = 64}).value(); };
  Registration one = live(k_code), two = live(k_code + 64);
  const Registration own = register_code(*built, Code{.start = k_code + 128, .size = 64, .lsda = 0x1234}).value();
  built.reset();
  EXPECT_EQ(table.users(), 3u);
  ASSERT_TRUE(one.cancel());
  EXPECT_EQ(table.users(), 2u);
  ASSERT_TRUE(two.cancel());
  EXPECT_EQ(table.users(), 1u) << "the test itself, which frees it";
}
INSTANTIATE_TEST_SUITE_P(Formats, Lifetime, testing::Bool());

struct Refused {
  Builder builder;
  const char* text;
};

TEST(HandlerTable, RefusesWhatCannotBe) {
  const Builder b = framed().size(64);
  const Refused refusals[]{
      {Builder(b).call_site({4, 9}, 30).call_site({8, 12}, 30),
       "call_site({8, 12}, 30): E_CALL_SITE: overlaps call_site({4, 9}, 30)\n"},
      {Builder(b).terminates({8, 12}).call_site({4, 9}, 30),
       "terminates({8, 12}): E_CALL_SITE: overlaps call_site({4, 9}, 30)\n"},
      {Builder(b).call_site({9, 9}, 30), "call_site({9, 9}, 30): E_CALL_SITE: has no bytes\n"},
      {Builder(b).call_site({9, 8}, 30), "call_site({9, 8}, 30): E_CALL_SITE: has no bytes\n"},
      {Builder(b).call_site({60, 65}, 30),
       "call_site({60, 65}, 30): E_CALL_SITE: end 65 lies behind the end of the procedure\n"},
      {Builder(b).call_site({-65, -60}, 30),
       "call_site({-65, -60}, 30): E_CALL_SITE: begin -65 lies in front of the procedure\n"},
      {Builder(b).call_site({4, 9}, 64),
       "call_site({4, 9}, 64): E_LANDING_PAD: landing pad lies behind the end of the procedure\n"},
      {Builder(b).call_site({4, 9}, 1000),
       "call_site({4, 9}, 1000): E_LANDING_PAD: landing pad 1000 lies behind the end of the procedure\n"},
      {Builder(b).call_site({4, 9}, -65),
       "call_site({4, 9}, -65): E_LANDING_PAD: landing pad -65 lies in front of the procedure\n"},
      {Builder(b).call_site({4, 9}, 0),
       "call_site({4, 9}, 0): E_LANDING_PAD: the first byte of a procedure cannot be a landing pad\n"},
      {framed().call_site({4, 9}, -8),
       "call_site({4, 9}, -8): E_LANDING_PAD: landing pad -8 is counted from the end: tell size()\n"},
      {framed().call_site({-9, -4}, 8),
       "call_site({-9, -4}, 8): E_CALL_SITE: begin -9 is counted from the end: tell size()\n"},
      {Builder(b).call_site({4, 9}, 30).catches(static_cast<const std::type_info*>(nullptr)),
       "catches(): E_CATCH_TYPE: null is no type; see catches_all()\n"},
      {Builder(b).call_site({4, 9}, 30).allows({&typeid(int), nullptr}), "allows(): E_CATCH_TYPE: null is no type\n"},
      {Builder(b).catches(typeid(int)), "catches(): INVALID_ARGUMENT: not behind a call_site()\n"},
      {Builder(b).terminates({4, 9}).cleans_up(), "cleans_up(): INVALID_ARGUMENT: not behind a call_site()\n"},
      {Builder(b).lsda(0x1000).call_site({4, 9}, 30),
       "procedure: INVALID_ARGUMENT: handlers, and language-specific data of the caller's by lsda()\n"},
  };
  for (const Refused& r : refusals) EXPECT_EQ(table_of(r.builder), r.text);
}

TEST(HandlerTable, CountsFromTheEndWhereTheSizeIsKnown) {
  EXPECT_EQ(table_of(framed().size(64).call_site({-60, -58}, -34).call_site({-4, 0}, 8)),
            "0..4\n4..6 -> 30\n6..60\n60..64 -> 8\n");
}

TEST(HandlerTable, OfOtherCpusKeepsToTheirInstructions) {
  const auto built = aarch64::describe().size(64).call_site({4, 8}, 22).build();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().text(),
            "call_site({4, 8}, 22): E_LANDING_PAD: landing pad 22 is no boundary of instructions\n");
  EXPECT_TRUE(aarch64::describe().size(64).call_site({4, 8}, 24).build());
}

}  // namespace
}  // namespace jitunwind::test

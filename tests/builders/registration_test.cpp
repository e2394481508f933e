// Registered code: what a registration owns, what walks find, and what happens when it ends.
#include "jitunwind/builders/registration.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/builders/described.h"
#include "tests/builders/registered_code.h"
#include "tests/support/counted_allocations.h"

namespace jitunwind {
namespace {

using namespace x86_64;

// Addresses that no code of this process has, so that only registrations know them.
constexpr Addr k_code = 0x7a00'0000'0000;

Description framed() {
  Builder b = describe("framed").push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx);
  return *b.pop({-3, -2}, rbx).pop({-2, -1}, rbp).build();
}

Description of_rows() {
  return *describe("of_rows").row_at(4, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]").row_at(-1, "cfa=rsp+8 ra=[cfa-8]").build();
}

const test::RegisteredCode k_registered;

std::string row_at(Addr pc) { return k_registered.row_at(pc); }
std::string name_at(Addr pc) { return k_registered.name_at(pc); }

constexpr const char* k_body = "dyn_directives: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]";
constexpr const char* k_body_of_rows = "dyn_table: cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]";

// covers: DY01 DY02 DY05
TEST(Registration, IsFoundUntilItDies) {
  {
    const auto live = register_code(framed(), {.start = k_code, .size = 64});
    ASSERT_TRUE(live) << live.error().what;
    EXPECT_TRUE(*live);
    EXPECT_EQ(live->range(), (AddrRange{k_code, k_code + 64}));
    EXPECT_EQ(row_at(k_code), "dyn_directives: cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(row_at(k_code + 5), k_body);
    EXPECT_EQ(row_at(k_code + 61), k_body);
    EXPECT_EQ(row_at(k_code + 63), "dyn_directives: cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(row_at(k_code + 64), "no row");
    EXPECT_EQ(name_at(k_code + 10), "framed");
  }
  EXPECT_EQ(row_at(k_code + 5), "no row");
}

TEST(Registration, OfRowsIsATableOfOneProcedure) {
  const auto live = register_code(of_rows(), {.start = k_code, .size = 64, .name = "a table"});
  ASSERT_TRUE(live) << live.error().what;
  EXPECT_EQ(row_at(k_code), "dyn_table: cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row_at(k_code + 3), "dyn_table: cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row_at(k_code + 4), k_body_of_rows);
  EXPECT_EQ(row_at(k_code + 62), k_body_of_rows);
  EXPECT_EQ(row_at(k_code + 63), "dyn_table: cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(name_at(k_code + 10), "a table");
  // Other procedures of the shape have their own code range, any distance apart.
  const auto far = register_code(of_rows(), {.start = 0x1000'0000, .size = 16});
  ASSERT_TRUE(far);
  EXPECT_EQ(row_at(0x1000'0000 + 14), k_body_of_rows);
  EXPECT_EQ(row_at(0x1000'0000 + 15), "dyn_table: cfa=rsp+8 ra=[cfa-8]");
}

TEST(Registration, OfRowsInAnyDistanceFromTheEnd) {
  // Every length of the one distance that depends on the size, and the longest code.
  for (const std::uint64_t size : {std::uint64_t{6}, std::uint64_t{70}, std::uint64_t{300}, std::uint64_t{70'000},
                                   std::uint64_t{1} << 30, std::uint64_t{1} << 33}) {
    const auto live = register_code(of_rows(), {.start = k_code, .size = size});
    ASSERT_TRUE(live) << size;
    EXPECT_EQ(row_at(k_code + size - 1), "dyn_table: cfa=rsp+8 ra=[cfa-8]") << size;
    EXPECT_EQ(row_at(k_code + size - 2), k_body_of_rows) << size;
  }
}

// covers: DY17
TEST(Registration, OwnsItsName) {
  char name[] = "short-lived";
  const Description d = framed();
  const auto named = register_code(d, {.start = k_code, .size = 64, .name = name});
  std::memset(name, 'x', sizeof name - 1);
  ASSERT_TRUE(named);
  EXPECT_EQ(name_at(k_code), "short-lived");
  const auto other = register_code(d, {.start = k_code + 64, .size = 64});
  EXPECT_EQ(name_at(k_code + 64), "framed");
  const auto nameless = register_code(*describe().build(), {.start = k_code + 128, .size = 64});
  ASSERT_TRUE(other && nameless);
  EXPECT_EQ(nameless->info()->u.pi.name_ptr, 0u);
}

TEST(Registration, CostsOneAllocation) {
  const Description directives = framed();
  const Description rows = of_rows();
  const std::size_t before = test::allocations();
  const auto one = register_code(directives, {.start = k_code, .size = 64});
  EXPECT_EQ(test::allocations(), before + 1);
  const auto two = register_code(directives, {.start = k_code + 64, .size = 64, .name = "with LSDA", .lsda = 0x1234});
  EXPECT_EQ(test::allocations(), before + 2);
  const auto three = register_code(rows, {.start = k_code + 128, .size = 64});
  EXPECT_EQ(test::allocations(), before + 3);
  ASSERT_TRUE(one && two && three);
  std::printf("bytes of one procedure: %zu directives, %zu with an LSDA, %zu rows; their shapes: %zu, %zu\n",
              one->bytes(), two->bytes(), three->bytes(), directives.shape().bytes(), rows.shape().bytes());
  EXPECT_EQ(one->bytes(), sizeof(unw_dyn_info_t) + 24 + sizeof "framed");
  EXPECT_EQ(two->bytes(), sizeof(unw_dyn_info_t) + 24 + 48 + sizeof "with LSDA");
  EXPECT_LT(three->bytes(), 256u);
}

// covers: DY21
TEST(Registration, CarriesHandlerAndLsda) {
  const auto of_directives = describe().personality(0x5000).lsda(0x6000).push({0, 1}, rbx).pop({-2, -1}, rbx).build();
  const auto of_rows = describe().personality(0x5000).row_at(4, "cfa=rsp+16 ra=[cfa-8]").ends_without_return().build();
  ASSERT_TRUE(of_directives && of_rows);
  const auto a = register_code(*of_directives, {.start = k_code, .size = 16});
  const auto b =
      register_code(*of_directives, {.start = k_code + 16, .size = 16, .lsda = 0x7000, .landing_pad_base = 9});
  const auto c = register_code(*of_rows, {.start = k_code + 32, .size = 16, .lsda = 0x8000});
  const auto d = register_code(*of_rows, {.start = k_code + 48, .size = 16});
  ASSERT_TRUE(a && b && c && d);
  const Addr expected_lsda[] = {0x6000, 0x7000, 0x8000, 0};
  for (unsigned i = 0; i < 4; ++i) {
    const auto info = k_registered.procedure_at(k_code + 16 * i + 8);
    ASSERT_TRUE(info) << i << ": " << info.error().what;
    EXPECT_EQ(info->handler, 0x5000u) << i;
    EXPECT_EQ(info->lsda, expected_lsda[i]) << i;
    EXPECT_EQ(info->range, (AddrRange{k_code + 16 * i, k_code + 16 * i + 16})) << i;
  }
  EXPECT_EQ(lsda_extension(*a->info()).landing_pad_base, 0u);
  EXPECT_EQ(lsda_extension(*b->info()).landing_pad_base, 9u);
  // The registration has 48 bytes of its own, and the list that all share: others begin with an empty region without
  // directives.
  const unw_dyn_region_info_t* own = a->info()->u.pi.regions;
  EXPECT_EQ(own->insn_count, 0);
  EXPECT_EQ(own->op_count, 2u);
  EXPECT_EQ(own->op[0].tag, UNW_DYN_STOP);
  EXPECT_EQ(own->next, of_directives->shape().regions());
  EXPECT_TRUE(validate(*a->info(), arch::x86_64).empty());
  EXPECT_EQ(row_at(k_code + 1), "dyn_directives: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
}

TEST(Registration, Refuses) {
  const auto refused = [](const Description& d, const Code& code) {
    const auto live = register_code(d, code);
    return live ? "registered" : std::string(error_name(live.error().code));
  };
  EXPECT_EQ(refused(framed(), {.start = k_code, .size = 7}), "e_overlap");
  EXPECT_EQ(refused(of_rows(), {.start = k_code, .size = 4}), "e_overlap");
  EXPECT_EQ(refused(framed(), {.start = k_code, .size = 0}), "e_range");
  EXPECT_EQ(refused(framed(), {.start = ~Addr{0} - 10, .size = 64}), "e_range");
  EXPECT_EQ(refused(*describe().size(16).push({0, 1}, rbx).pop({14, 15}, rbx).build(), {.start = k_code, .size = 32}),
            "e_range");
  EXPECT_EQ(refused(*aarch64::describe().build(), {.start = k_code, .size = 16}), "invalid_argument");
  EXPECT_EQ(row_at(k_code + 5), "no row");
}

TEST(Registration, Moves) {
  auto made = register_code(framed(), {.start = k_code, .size = 64});
  ASSERT_TRUE(made);
  Registration a = std::move(*made);
  EXPECT_FALSE(*made);
  Registration b;
  EXPECT_FALSE(b);
  EXPECT_EQ(b.range(), AddrRange{});
  EXPECT_EQ(b.bytes(), 0u);
  b = std::move(a);
  EXPECT_EQ(row_at(k_code + 5), k_body);
  auto other = register_code(framed(), {.start = k_code + 64, .size = 64});
  ASSERT_TRUE(other);
  b = std::move(*other);  // the first one is cancelled
  EXPECT_EQ(row_at(k_code + 5), "no row");
  EXPECT_EQ(row_at(k_code + 69), k_body);
  EXPECT_TRUE(b.cancel());
  EXPECT_TRUE(b.cancel()) << "nothing to do";
  EXPECT_EQ(row_at(k_code + 69), "no row");
}

TEST(Registration, ReleasesAndAdopts) {
  auto made = register_code(framed(), {.start = k_code, .size = 64});
  ASSERT_TRUE(made);
  unw_dyn_info_t* const released = made->release();
  *made = Registration();
  EXPECT_EQ(row_at(k_code + 5), k_body);
  Registration adopted = Registration::adopt(released);
  EXPECT_TRUE(adopted.cancel());
  EXPECT_EQ(row_at(k_code + 5), "no row");
}

TEST(Registration, RetiresWithoutWaiting) {
  auto made = register_code(framed(), {.start = k_code, .size = 64});
  ASSERT_TRUE(made);
  const std::size_t users = framed().shape().users();
  RetireTicket ticket;
  {
    // This thread itself is reading the procedure, so waiting would never end.
    const ProcedureHold hold(k_code + 5);
    ASSERT_EQ(hold.info(), made->info());
    const auto retired = made->retire();
    ASSERT_TRUE(retired) << retired.error().what;
    ticket = *retired;
    EXPECT_FALSE(*made);
    EXPECT_FALSE(reclaimed(ticket));
    EXPECT_EQ(hold.info()->start_ip, k_code) << "the descriptor is still there";
    EXPECT_EQ(ProcedureHold(k_code + 5).info(), nullptr);
  }
  EXPECT_TRUE(reclaimed(ticket));
  EXPECT_EQ(framed().shape().users(), users - 1) << "the block is freed, and its reference to the shape with it";
}

TEST(Registration, IsLeftAloneWhereCancellingWouldNeverEnd) {
  auto made = register_code(framed(), {.start = k_code, .size = 64});
  ASSERT_TRUE(made);
  {
    const ProcedureHold hold(k_code + 5);
    const Status cancelled = made->cancel();
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().code, ErrorCode::in_signal_handler);
    EXPECT_TRUE(*made);
  }
  EXPECT_EQ(row_at(k_code + 5), k_body);
  EXPECT_TRUE(made->cancel());
}

// covers: DY27
TEST(RegistrationBatch, OfAThousandProceduresThatShareAShape) {
  const Description d = framed();
  std::vector<RegistrationBatch::Item> items;
  for (unsigned i = 0; i < 1000; ++i) items.push_back({&d, {.start = k_code + 4096 * i, .size = 8 + i % 100}});
  const std::size_t before = registry_statistics().registered;
  RegistrationBatch batch;
  ASSERT_TRUE(batch.register_code(items));
  EXPECT_EQ(batch.size(), 1000u);
  EXPECT_EQ(registry_statistics().registered, before + 1000);
  EXPECT_EQ(d.shape().users(), 1001u);
  EXPECT_EQ(row_at(k_code + 4096 * 777 + 5), k_body);

  // Half of them are cancelled one by one while the code of the others stays known; then the rest are cancelled at
  // once.
  std::vector<Registration> half;
  RegistrationBatch rest;
  for (unsigned i = 0; i < 1000; ++i) {
    auto one = register_code(d, {.start = k_code + 0x1000'0000 + 4096 * i, .size = 64});
    ASSERT_TRUE(one);
    if (i % 2 == 0)
      half.push_back(std::move(*one));
    else
      ASSERT_TRUE(rest.add(std::move(*one)));
  }
  half.clear();
  EXPECT_EQ(row_at(k_code + 0x1000'0000 + 4096 * 776 + 5), "no row");
  EXPECT_EQ(row_at(k_code + 0x1000'0000 + 4096 * 777 + 5), k_body);
  EXPECT_TRUE(rest.cancel());
  EXPECT_TRUE(rest.empty());
  EXPECT_TRUE(batch.cancel());
  EXPECT_EQ(registry_statistics().registered, before);
  EXPECT_EQ(d.shape().users(), 1u);
}

TEST(RegistrationBatch, RegistersAllOrNone) {
  const Description d = framed();
  const RegistrationBatch::Item items[] = {{&d, {.start = k_code, .size = 64}},
                                           {&d, {.start = k_code + 64, .size = 3}}};
  RegistrationBatch batch;
  const Status registered = batch.register_code(items);
  ASSERT_FALSE(registered);
  EXPECT_EQ(registered.error().code, ErrorCode::e_overlap);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(row_at(k_code + 5), "no row");
  EXPECT_EQ(d.shape().users(), 1u);
}

/// JITs that know where functions begin, and not where they end.
TEST(RegistrationBatch, EndsCodeWithoutASizeAtTheNextBegin) {
  const Description d = framed();
  const auto of = [&](Addr start, std::uint64_t size) {
    return RegistrationBatch::Item{&d, {.start = k_code + start, .size = size}};
  };
  const RegistrationBatch::Item items[] = {of(0, 0), of(64, 0), of(100, 20), of(200, 0), of(220, 30)};
  RegistrationBatch batch;
  ASSERT_TRUE(batch.register_code(items));
  const auto end_of = [](Addr start) {
    Addr end = k_code + start;
    while (row_at(end) != "no row" && end < k_code + 300) ++end;
    return end - k_code;
  };
  EXPECT_EQ(end_of(0), 120u) << "three without a gap";
  EXPECT_EQ(end_of(200), 250u);
  EXPECT_EQ(row_at(k_code + 63), "dyn_directives: cfa=rsp+8 ra=[cfa-8]") << "its epilogue is counted from the end";
  EXPECT_EQ(row_at(k_code + 61), k_body);
  EXPECT_TRUE(batch.cancel());

  const auto reason = [&](std::initializer_list<RegistrationBatch::Item> wrong) {
    const Status registered = batch.register_code({wrong.begin(), wrong.size()});
    return registered ? "" : std::string(registered.error().what);
  };
  EXPECT_EQ(reason({of(64, 64), of(0, 0)}), "procedure without code") << "none is next";
  EXPECT_EQ(reason({of(64, 0), of(64, 64)}), "procedure without code");
  EXPECT_EQ(reason({of(64, 0), of(0, 64)}), "code range wraps around") << "not in order";
  EXPECT_TRUE(batch.empty());
}

TEST(RegistrationBatch, RetiresAndMoves) {
  const Description d = framed();
  RegistrationBatch batch;
  std::vector<RegistrationBatch::Item> items;
  for (unsigned i = 0; i < 100; ++i) items.push_back({&d, {.start = k_code + 64 * i, .size = 64}});
  ASSERT_TRUE(batch.register_code(items));
  RegistrationBatch moved = std::move(batch);
  EXPECT_TRUE(batch.empty());  // NOLINT(bugprone-use-after-move): empty is what moving leaves
  batch = std::move(moved);
  EXPECT_EQ(row_at(k_code + 64 * 50 + 5), k_body);
  const auto ticket = batch.retire();
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(row_at(k_code + 64 * 50 + 5), "no row");
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_EQ(d.shape().users(), 1u);
  const auto nothing = batch.retire();
  EXPECT_TRUE(nothing && reclaimed(*nothing));
}

TEST(Registration, InAStaticObjectDiesSafelyAtExit) {
  EXPECT_EXIT(
      {
        static RegistrationBatch batch;
        static auto live = register_code(framed(), {.start = k_code, .size = 64});
        static auto other = register_code(of_rows(), {.start = k_code + 64, .size = 64});
        if (!batch.add(std::move(*other))) std::exit(2);
        std::exit(live ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// covers: DY14
TEST(Registration, FromManyThreadsWhileOthersLookUp) {
  const Description shared = framed();
  const Description rows = of_rows();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const Addr base = k_code + 0x100'0000 * t;
      for (int i = 0; i < 500; ++i) {
        auto a = register_code(shared, {.start = base, .size = 64});
        auto b = register_code(rows, {.start = base + 64, .size = 64});
        if (!a || !b || row_at(base + 5) != k_body || row_at(base + 64 + 5) != k_body_of_rows) ++wrong;
        if (i % 2 == 0 && (!a->retire() || row_at(base + 5) != "no row")) ++wrong;
      }
    });
  std::thread reader([&] {
    while (!stop)
      for (unsigned t = 0; t < 3; ++t) {
        const std::string row = row_at(k_code + 0x100'0000 * t + 5);
        if (row != k_body && row != "no row") ++wrong;
      }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(row_at(k_code + 5), "no row");
}

}  // namespace
}  // namespace jitunwind

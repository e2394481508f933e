// Procedures with more rows than fit anywhere at once: described, walked, thrown through, landed in.
#include <gtest/gtest.h>

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <stdexcept>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/large/long_code.h"

extern "C" const void* _Unwind_Find_FDE(const void* pc, void* bases);

/// Calls code(callee) with 4242 in rbx.
extern "C" void large_call_with_rbx(void (*code)(void (*)()), void (*callee)());
asm(R"(.text
.type large_call_with_rbx, @function
large_call_with_rbx:
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset %rbx, -16
  mov $4242, %ebx
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
.size large_call_with_rbx, . - large_call_with_rbx)");

namespace jitunwind::test {
namespace {

using Says = LongCode::Says;

struct Bases {
  Addr text = 1, data = 1, function = 1;
};

/// The unwinder's FDE for a place in registered code.
struct Answer {
  std::string row;
  Addr function = 0;
  AddrRange range{};
};
Answer fde_row(Addr pc) {
  Bases bases;
  const void* const at = _Unwind_Find_FDE(reinterpret_cast<const void*>(pc), &bases);
  if (at == nullptr) return {"no FDE", 0, {}};
  static const LocalMemory memory;
  MemoryWindow window;
  MemoryView view(memory, window, {});
  const CfiContext context{*host_arch()};
  auto fde = read_fde(view, context, reinterpret_cast<std::uintptr_t>(at));
  // A shape's FDE belongs to the function that is given beside it.
  const ProcedureHold procedure(pc);
  if (fde && fde->range.begin == 0 && procedure.info()) fde->range = {bases.function, procedure.info()->end_ip};
  FrameRow row;
  if (!fde || !jitunwind::row_at(*fde, context, pc, row)) return {"bad FDE", 0, {}};
  return {to_text(row, *host_arch()), bases.function, fde->range};
}

class Sizes : public testing::TestWithParam<std::tuple<std::size_t, Says>> {
 protected:
  std::size_t pairs() const { return std::get<0>(GetParam()); }
  Says says() const { return std::get<1>(GetParam()); }
};

thread_local std::array<void*, 100> g_trace;
thread_local int g_depth = 0;
thread_local std::string g_walk;
thread_local Addr g_long_code = 0;

/// Walks by steps up to the frame that called the long code, which must have its rbx again.
std::string walk_over_long_code() {
  Walk walk = walk_here();
  bool inside = false;
  for (const Frame& frame : walk) {
    if (inside) {
      const auto rbx = frame.cursor().get(3);
      return rbx ? "rbx " + std::to_string(*rbx) : "rbx is lost";
    }
    inside = frame.pc() > g_long_code && frame.pc() <= g_long_code + (1u << 23);
  }
  return walk.why();
}

void look_and_throw() {
  g_depth = ::backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  g_walk = walk_over_long_code();
  throw std::runtime_error("through long code");
}

[[gnu::noinline]] bool catches(const LongCode& code) {
  try {
    large_call_with_rbx(reinterpret_cast<void (*)(void (*)())>(code.begin()), look_and_throw);
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

TEST_P(Sizes, ThrowsBacktracesAndWalksPass) {
  const LongCode code(pairs());
  const Description description = code.describe(says());
  const Registration live = code.registered(description);
  g_long_code = code.begin();
  const int depth_here = ::backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  EXPECT_TRUE(catches(code));
  EXPECT_EQ(g_depth, depth_here + 4);  // catches(), the caller, the code, look_and_throw()
  EXPECT_EQ(g_walk, "rbx 4242");
  EXPECT_EQ(why_stopped().kind, StoppedAt::Kind::nowhere);
}

TEST_P(Sizes, RowsAreRightFromEndToEnd) {
  const LongCode code(pairs());
  const Description description = code.describe(says());
  EXPECT_EQ(description.format(), says() == Says::rows ? UNW_INFO_FORMAT_IP_OFFSET : UNW_INFO_FORMAT_DYNAMIC);
  // The description's rows are compared one by one.
  DescribedRows rows(description, static_cast<std::uint64_t>(code.end()));
  for (std::int64_t at = 0; at < code.end(); ++at) {
    const auto row = rows.row(static_cast<std::uint64_t>(at));
    ASSERT_TRUE(row && *row == code.expected(at)) << at << ": " << (row ? to_text(*row, *host_arch()) : "none");
  }
  // The unwinder and the lookups are asked about places at the ends and some in between.
  const Registration live = code.registered(description);
  std::vector<std::int64_t> places{0, 1, 2, 3, 4095, 4096, code.end() - 3, code.end() - 2, code.end() - 1};
  std::mt19937_64 random(1);
  for (int i = 0; i < 6; ++i)
    places.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(code.end())));
  for (const std::int64_t at : places) {
    if (at >= code.end()) continue;
    const Addr pc = code.begin() + static_cast<Addr>(at);
    const std::string expected = to_text(code.expected(at), *host_arch());
    const Answer answer = fde_row(pc);
    EXPECT_EQ(answer.row, expected) << at;
    EXPECT_EQ(answer.function, code.begin());
    EXPECT_EQ(answer.range, (AddrRange{code.begin(), code.begin() + static_cast<Addr>(code.end())}));
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
    FrameRow row;
    const Found found = local_space().find_row(lookup, row);
    ASSERT_TRUE(found && *found) << at;
    EXPECT_EQ(to_text(row, *host_arch()), expected) << at;
  }
}

const auto g_say_why = std::set_terminate([] {
  std::puts(why_stopped().text().c_str());
  std::abort();
});

INSTANTIATE_TEST_SUITE_P(Large, Sizes,
                         testing::Combine(testing::Values(10, 700, 2047, 2048, 5000, 50'000, 500'000),
                                          testing::Values(Says::directives, Says::rows)),
                         [](const auto& info) {
                           return (std::get<1>(info.param) == Says::rows ? "Rows" : "Directives") +
                                  std::to_string(std::get<0>(info.param));
                         });

/// Every place is asked about, as throws from everywhere would, in three orders. The places of one stretch have one
/// FDE; the shape's FDE may come first, until there are others.
TEST(Large, FdesOfAllStretches) {
  const LongCode code(3000);
  std::vector<std::int64_t> places;
  for (std::int64_t at = 0; at < code.end(); ++at) places.push_back(at);
  const std::vector<std::int64_t> ascending = places, descending(places.rbegin(), places.rend());
  std::ranges::shuffle(places, std::mt19937(1));
  for (const auto& order : {ascending, descending, places}) {
    const Registration live = code.registered(code.describe());
    std::set<const void*> fdes;
    for (const std::int64_t at : order) {
      const Addr pc = code.begin() + static_cast<Addr>(at);
      ASSERT_EQ(fde_row(pc).row, to_text(code.expected(at), *host_arch())) << at;
      Bases bases;
      fdes.insert(_Unwind_Find_FDE(reinterpret_cast<const void*>(pc), &bases));
    }
    const std::size_t stretches = (static_cast<std::size_t>(code.end()) + 511) / 512;
    EXPECT_TRUE(fdes.size() == stretches || fdes.size() == stretches + 1) << fdes.size();
  }
}

/// An FDE has fewer rows if little memory is left.
TEST(Large, FdesFitIntoWhatIsLeft) {
  const LongCode code(3000);
  const Registration live = code.registered(code.describe());
  std::vector<DerivedRecord*> taken;
  for (std::size_t bytes = DerivedRecords::k_max_bytes; bytes >= 8; bytes /= 2)
    while (DerivedRecord* const record = allocate_derived(bytes)) taken.push_back(record);
  const auto small = std::ranges::find_if(taken, [](const DerivedRecord* r) { return r->size() < 256; });
  ASSERT_NE(small, taken.end());
  give_back_derived(*small);
  taken.erase(small);
  const Addr pc = code.begin() + 1235;
  EXPECT_EQ(fde_row(pc).row, to_text(code.expected(1235), *host_arch()));
  EXPECT_EQ(fde_row(code.begin() + 3000).row, "no FDE");
  for (DerivedRecord* const record : taken) give_back_derived(record);
}

/// Memory for long code is mapped when it is registered: rows of all of it fit, whether there are few or one for each
/// byte.
TEST(Large, EveryStretchHasMemory) {
  constexpr std::int64_t k_sparse = 3 << 20, k_dense = 1 << 20;
  auto sparse = x86_64::describe("sparse"), dense = x86_64::describe("dense");
  for (std::int64_t at = 0; at < k_sparse; at += 1024) sparse.push({at + 8, at + 9}).pop({at + 900, at + 901});
  for (std::int64_t at = 0; at < k_dense; at += 2)
    dense.push({at, at + 1}, x86_64::rbx).pop({at + 1, at + 2}, x86_64::rbx);
  constexpr Addr k_code = 0x300'0000'0000;
  const Registration sparse_one = register_code(sparse.size(k_sparse).build().value(), Code{k_code, k_sparse}).value();
  for (Addr at = 0; at < k_sparse; at += 512) ASSERT_EQ(fde_row(k_code + at + 16).row, "cfa=rsp+16 ra=[cfa-8]") << at;
  constexpr Addr k_other = 0x308'0000'0000;
  const Registration dense_one =
      register_code(dense.ends_without_return().size(k_dense).build().value(), Code{k_other, k_dense}).value();
  for (Addr at = 0; at < k_dense; at += 512)
    ASSERT_EQ(fde_row(k_other + at + 17).row, "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]") << at;
}

/// Stretches whose rows take nothing, stretches that fill an FDE or exceed it, and slots at any byte.
TEST(Large, StretchesOfAnyKind) {
  constexpr std::int64_t k_size = 12 << 10;
  auto builder = x86_64::describe("any").size(k_size).row_at(0, "cfa=rsp+8 ra=[cfa-8]");
  for (std::int64_t at = 2048; at < 4096; ++at)
    builder.row_at(at, at % 2 == 0 ? "cfa=rsp+128 rbx=[cfa-16] rbp=[cfa-24] r12=[cfa-32] r13=[cfa-40] ra=[cfa-8]"
                                   : "cfa=rbp+64 rbx=[cfa-24] rbp=[cfa-32] r12=[cfa-40] r13=[cfa-48] ra=[cfa-8]");
  for (std::int64_t at = 5000; at < 6000; at += 20)
    builder.row_at(at, at % 40 == 0 ? "cfa=rsp+32 rbx=[cfa-17] ra=[cfa-8]" : "cfa=rsp+40 ra=[cfa-8]");
  for (std::int64_t at = 7000; at < 12'000; at += 100)
    builder.row_at(at, at % 200 == 0 ? "cfa=[rsp+16]+24 rbx=[cfa-16] ra=[cfa-8]" : "cfa=rsp+16 rbx=r12 ra=[cfa-8]");
  const auto description = builder.build();
  ASSERT_TRUE(description) << description.error().text();
  constexpr Addr k_code = 0x320'0000'0000;
  std::vector<Addr> places(k_size);
  for (Addr at = 0; at < k_size; ++at) places[at] = at;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Registration live = register_code(*description, Code{k_code, k_size}).value();
    for (const Addr at : places) {
      const auto row = description->row(at, k_size);
      ASSERT_TRUE(row) << at;
      ASSERT_EQ(fde_row(k_code + at).row, to_text(*row, *host_arch())) << at << ", order " << seed;
    }
    std::ranges::shuffle(places, std::mt19937(seed));
  }
}

// Landing pads count from the beginning of the procedure, whatever part of it an FDE has the rows of.

std::atomic<int> g_landed{0};
extern "C" void* __cxa_begin_catch(void*) noexcept;
extern "C" void __cxa_end_catch();
void land(void* exception) {
  __cxa_begin_catch(exception);
  ++g_landed;
  __cxa_end_catch();
}

TEST(Large, ExceptionsLandFarInside) {
  constexpr std::int64_t k_pairs = 20'000;
  std::vector<std::uint8_t> bytes{0x53};
  for (int i = 0; i < k_pairs; ++i) bytes.insert(bytes.end(), {0x50, 0x58});
  const auto call = static_cast<std::int64_t>(bytes.size());
  bytes.insert(bytes.end(), {0xff, 0xd7, 0x5b, 0xc3});  // call rdi; pop rbx; ret
  const auto pad = static_cast<std::int64_t>(bytes.size());
  bytes.insert(bytes.end(), {0x48, 0x89, 0xc7, 0x48, 0xb8});  // mov rdi,rax; mov rax,land
  const auto address = reinterpret_cast<std::uintptr_t>(&land);
  for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(address >> 8 * i));
  bytes.insert(bytes.end(), {0xff, 0xd0, 0x5b, 0xc3});  // call rax; pop rbx; ret
  using namespace x86_64;
  auto builder = describe("lands").push({0, 1}, rbx).remember();
  for (std::int64_t i = 0; i < k_pairs; ++i) builder.push({1 + 2 * i, 2 + 2 * i}).pop({2 + 2 * i, 3 + 2 * i});
  builder.pop({call + 2, call + 3}, rbx).restore({call + 3, call + 4});
  const auto size = static_cast<std::int64_t>(bytes.size());
  builder.pop({size - 2, size - 1}, rbx).size(bytes.size());
  builder.call_site({call, call + 2}, pad).catches(typeid(std::runtime_error));
  const auto description = builder.build();
  ASSERT_TRUE(description) << description.error().text();
  const ExecutableCopy code(bytes);
  const Registration live = register_code(*description, code.begin(), code.size()).value();
  g_landed = 0;
  reinterpret_cast<void (*)(void (*)())>(code.begin())([] { throw std::runtime_error("caught inside"); });
  EXPECT_EQ(g_landed, 1);
}

/// Each instruction behind an ALIAS is looked up by itself.
TEST(Large, CodeThatIsLikeOther) {
  const LongCode code(10'000);
  const Registration original = code.registered(code.describe());
  const auto alias = x86_64::describe("alias").alias(code.begin()).size(static_cast<std::uint64_t>(code.end())).build();
  ASSERT_TRUE(alias) << alias.error().text();
  constexpr Addr k_code = 0x310'0000'0000;
  const Registration live = register_code(*alias, Code{k_code, static_cast<std::uint64_t>(code.end())}).value();
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{1}, std::int64_t{9000}, code.end() - 3, code.end() - 1})
    EXPECT_EQ(fde_row(k_code + static_cast<Addr>(at)).row, to_text(code.expected(at), *host_arch())) << at;
}

// Builders.

/// More directives than a region holds become several regions with the same meaning, including remembered states and
/// regions that were asked for.
TEST(Large, RegionsAreCut) {
  using namespace x86_64;
  constexpr std::int64_t k_exits = 70'000;
  auto automatic = describe().push({0, 1}, rbx).remember();
  auto given = describe().region(static_cast<std::int32_t>(k_exits * 4 + 2));
  given.add(0, rsp, -8).spill_sp_rel(0, rbx, 0).label_state(0, 7);
  for (std::int64_t at = 1; at < k_exits * 4; at += 4) {
    automatic.pop({at + 1, at + 2}, rbx).restore({at + 2, at + 3});
    given.add(static_cast<std::int32_t>(at + 1), rsp, 8).copy_state(static_cast<std::int32_t>(at + 2), 7);
  }
  const std::uint64_t size = k_exits * 4 + 2;
  for (auto* builder : {&automatic, &given}) {
    const auto description = builder->ends_without_return().size(size).build();
    ASSERT_TRUE(description) << description.error().text();
    int regions = 0;
    for (const unw_dyn_region_info_t* r = description->shape().regions(); r != nullptr; r = r->next) ++regions;
    EXPECT_GT(regions, 2);
    DescribedRows rows(*description, size);
    for (std::uint64_t at = 1; at < size - 1; ++at) {
      const auto row = rows.row(at);
      ASSERT_TRUE(row);
      EXPECT_EQ(row->cfa.offset, at % 4 == 3 ? 8 : 16) << at;
    }
  }
}

TEST(Large, WhatCannotBeCutIsRefused) {
  using namespace x86_64;
  auto pops = describe().region(200'000);
  for (std::int32_t i = 0; i < 70'000; ++i) pops.add(i, rsp, i % 2 == 0 ? -8 : 8);
  pops.pop_frames(70'000, 1);
  EXPECT_FALSE(pops.build());
}

/// The successive rows of a description equal its rows for single offsets.
TEST(Large, DescribedRowsAreTheRows) {
  const LongCode code(300);
  for (const Says says : {Says::directives, Says::rows}) {
    const Description description = code.describe(says);
    const auto bytes = static_cast<std::uint64_t>(code.end());
    DescribedRows rows(description, bytes);
    for (std::uint64_t at = 0; at < bytes; ++at) {
      const auto one = description.row(at, bytes), in_turn = rows.row(at);
      ASSERT_TRUE(one && in_turn);
      EXPECT_EQ(*one, *in_turn);
      EXPECT_EQ(one->range, in_turn->range);
      EXPECT_EQ(one->origin, in_turn->origin);
    }
    EXPECT_FALSE(rows.row(bytes));
    EXPECT_FALSE(DescribedRows(description, bytes + 1).row(0));
  }
}

}  // namespace
}  // namespace jitunwind::test

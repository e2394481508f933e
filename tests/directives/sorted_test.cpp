// The cost of a list's order in instructions of the evaluator, counted by the trap flag, one signal each.
#include <gtest/gtest.h>

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/rows/row_case.h"

namespace jitunwind::test {
namespace {

using rows::CaseProcedure;
using rows::CaseRegion;
using rows::k_code;

volatile std::uint64_t g_instructions;

void count_instruction(int, siginfo_t*, void*) { g_instructions = g_instructions + 1; }

[[gnu::noinline]] std::uint64_t instructions_of(const std::function<void()>& work) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = count_instruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  g_instructions = 0;
  // EFLAGS.TF is bit 8 (Intel SDM, volume 3, "EFLAGS register"). The red zone is not written to.
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  work();
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  sigaction(SIGTRAP, &before, nullptr);
  return g_instructions;
}

/// Returns `count` pushes, one directive each, in the order of their instructions.
std::vector<unw_dyn_op_t> pushes(int count) {
  std::vector<unw_dyn_op_t> made;
  for (int i = 0; i < count; ++i) made.push_back(_U_dyn_op(UNW_DYN_ADD, 0, i, 7, static_cast<unw_word_t>(-8)));
  return made;
}

/// Counts the instructions for the row at the last push.
std::uint64_t cost_of(const std::vector<unw_dyn_op_t>& ops) {
  const auto length = static_cast<std::int32_t>(ops.size()) + 1;
  const std::vector<CaseRegion> regions{{length, ops, 0, -1}};
  const CaseProcedure procedure(regions, AddrRange{k_code, k_code + static_cast<Addr>(length)});
  FrameRow row;
  Status status = Done{};
  const auto evaluate = [&] {
    status = directive_row(procedure.info(), arch::x86_64, CodeAddress::interrupted(k_code + ops.size()), nullptr, row);
  };
  evaluate();  // what is bound at the first call is not counted
  const std::uint64_t cost = instructions_of(evaluate);
  EXPECT_TRUE(status);
  EXPECT_EQ(to_text(row, arch::x86_64), "cfa=rsp+" + std::to_string(8 * (ops.size() + 1)) + " ra=[cfa-8]");
  return cost;
}

std::uint64_t shuffled_cost(int count) {
  auto ops = pushes(count);
  std::shuffle(ops.begin(), ops.end(), std::mt19937_64(20261124));
  return cost_of(ops);
}

// covers: DY59
TEST(SortedDirectives, AreReadFaster) {
  const std::uint64_t sorted = cost_of(pushes(100));
  const std::uint64_t shuffled = shuffled_cost(100);
  RecordProperty("sorted_instructions", static_cast<int>(sorted));
  RecordProperty("shuffled_instructions", static_cast<int>(shuffled));
  EXPECT_GT(sorted, 1000u);
  EXPECT_LT(10 * sorted, 9 * shuffled) << "read in order, not by an index";
}

/// Twice the list costs twice the instructions; a look at each pair would cost four times as many.
// covers: DY59
TEST(SortedDirectives, OrderIsFoundOutInOneReading) {
  for (const auto cost : {+[](int count) { return cost_of(pushes(count)); }, &shuffled_cost}) {
    const std::uint64_t base = cost(0), once = cost(50) - base, twice = cost(100) - base;
    EXPECT_GT(twice, once * 3 / 2);
    EXPECT_LT(twice, once * 3);
  }
}

}  // namespace
}  // namespace jitunwind::test

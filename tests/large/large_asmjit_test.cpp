// Large procedures written with asmjit.
#include <gtest/gtest.h>

#include <execinfo.h>
#include <jitunwind/asmjit.h>

#include <array>
#include <stdexcept>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/sdk/walk.h"
#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;

std::array<void*, 100> g_trace;
int g_depth = 0;
std::size_t g_walked = 0;
int g_calls = 0;
int g_throw_at = 0;

void callee() {
  if (++g_calls != g_throw_at) return;
  g_depth = ::backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  g_walked = jitunwind::backtrace(std::span<void*>(g_trace));
  throw std::runtime_error("from a call site");
}

class Calls : public testing::TestWithParam<int> {};

/// There are so many call sites with two arguments on the stack; the exception passes the first, one in the middle, and
/// the last.
TEST_P(Calls, Pass) {
  const int sites = GetParam();
  AsmjitRuntime runtime({.on_refusal = [](const AsmjitRefusal& refusal) { ADD_FAILURE() << refusal.text(); }});
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbx);
  a.mov(rbx, asmjit::imm(reinterpret_cast<void*>(&callee)));
  for (int i = 0; i < sites; ++i) {
    a.push(1);
    a.push(2);
    a.call(rbx);
    a.add(rsp, 16);
  }
  a.pop(rbx);
  a.ret();
  void (*function)() = nullptr;
  ASSERT_EQ(runtime.add(&function, &code, "calls"), asmjit::kErrorOk);
  const int depth = ::backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  for (const int at : {1, sites / 2 + 1, sites}) {
    g_calls = 0;
    g_throw_at = at;
    EXPECT_THROW(function(), std::runtime_error) << at;
    EXPECT_EQ(g_depth, depth + 2) << at;
    EXPECT_EQ(g_walked, static_cast<std::size_t>(depth) + 1) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Large, Calls, testing::Values(1, 1000, 2000, 8000, 100'000));

/// The directives of a large procedure give a row at every boundary; they are derived once and read back once.
TEST(LargeAsmjit, RowsOfManyExits) {
  constexpr int k_exits = 40'000;
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbx);
  for (int i = 0; i < k_exits; ++i) {
    const asmjit::Label behind = new_label(a);
    a.test(rax, rax);  // 3 bytes
    a.je(behind);      // 6
    a.pop(rbx);        // 1
    a.ret();           // 1
    a.bind(behind);
  }
  a.pop(rbx);
  a.ret();
  const AsmjitDescription described = describe_asmjit(code);
  ASSERT_TRUE(described.complete()) << described.text();
  ASSERT_EQ(described.procedures.size(), 1u);
  const AsmjitProcedure& procedure = described.procedures.front();
  EXPECT_EQ(procedure.description.format(), UNW_INFO_FORMAT_DYNAMIC);
  const std::uint64_t size = procedure.end - procedure.begin;
  ASSERT_EQ(size, 1u + 11 * k_exits + 2);
  for (const std::uint64_t exit : {0u, 1u, 20'000u, k_exits - 1u}) {
    const auto cfa_at = [&](std::uint64_t offset) {
      return procedure.description.row(1 + 11 * exit + offset, size).value().cfa.offset;
    };
    EXPECT_EQ(cfa_at(0), 16) << exit;
    EXPECT_EQ(cfa_at(9), 16) << exit;
    EXPECT_EQ(cfa_at(10), 8) << exit;
    EXPECT_EQ(cfa_at(11), 16) << exit;
  }
}

}  // namespace
}  // namespace jitunwind::test

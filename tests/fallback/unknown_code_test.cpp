// Compares walks from every instruction of code without unwind information, and of its callees, with the stack of calls
// that the instructions have made: every returned address is a caller, and a walk that claims to be complete has all of
// them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/fallback/stepped_walks.h"

using Helper = std::int64_t (*)(std::int64_t);

#define UNKNOWN(variant)                          \
  extern "C" std::int64_t run_##variant(Helper);  \
  extern "C" const std::byte __start_##variant[]; \
  extern "C" const std::byte __stop_##variant[];
#include "tests/fallback/data/unknown_code.def"
#undef UNKNOWN

extern "C" std::int64_t unknown_all(Helper helper, std::int64_t n, void* end_of_other_stack);
extern "C" const std::byte __start_unknown_code[];
extern "C" const std::byte __stop_unknown_code[];
extern "C" const std::uint32_t unknown_starts[];
extern "C" const std::uint32_t unknown_starts_end[];

namespace jitunwind::test {
namespace {

std::int64_t helper(std::int64_t x) { return x / 2 + 1; }

alignas(64) std::array<std::byte, 64 << 10> g_other_stack;
void* end_of_other_stack() { return g_other_stack.data() + g_other_stack.size(); }

/// Keeps calls from becoming jumps.
volatile std::int64_t g_sum = 0;

// covers: LU20
TEST(UnknownCode, WrittenByHandHasNoWrongCaller) {
  expect_right("written by hand",
               [] {
                 for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + unknown_all(&helper, n, end_of_other_stack());
               },
               {0.5});
}

// covers: LU20
TEST(UnknownCode, CalledByAPointerHasNoWrongCaller) {
  std::int64_t (*volatile call)(Helper, std::int64_t, void*) = &unknown_all;
  expect_right("called by a pointer",
               [&] {
                 for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + call(&helper, n, end_of_other_stack());
               },
               {0});
}

/// A copy of the hand-written code in its own memory.
class CopiedCode {
 public:
  CopiedCode() : memory_(::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
    std::memcpy(memory_, __start_unknown_code, k_size);
    if (::mprotect(memory_, k_size, PROT_READ | PROT_EXEC) != 0) std::abort();
  }
  ~CopiedCode() { ::munmap(memory_, k_size); }
  CopiedCode(const CopiedCode&) = delete;
  CopiedCode& operator=(const CopiedCode&) = delete;

  Addr begin() const { return addr_of(memory_); }
  decltype(&unknown_all) all() const {
    const Addr offset = addr_of(reinterpret_cast<const void*>(&unknown_all)) - addr_of(__start_unknown_code);
    return reinterpret_cast<decltype(&unknown_all)>(begin() + offset);
  }

 private:
  const std::size_t k_size = static_cast<std::size_t>(__stop_unknown_code - __start_unknown_code);
  void* const memory_;
};

void expect_right_in(const char* name, const CopiedCode& code, Expected expected) {
  const volatile auto call = code.all();  // by memory: no register tells later where the call went
  const auto run = [&] {
    for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + call(&helper, n, end_of_other_stack());
  };
  expect_right(name, run, expected);
}

// covers: LU20
TEST(UnknownCode, MadeAtRunTimeHasNoWrongCaller) { expect_right_in("made at run time", CopiedCode(), {0}); }

/// Only the beginning and the end of each procedure are known: those that are called by a pointer have callers, too.
/// Pieces of an interpreter have names as well, and none.
TEST(UnknownCode, WhoseNamesAreKnownHasNoWrongCaller) {
  const CopiedCode code;
  std::vector<unw_dyn_info_t> named;
  for (const std::uint32_t* start = unknown_starts; start + 1 != unknown_starts_end; ++start)
    named.push_back(procedure_of_fde({code.begin() + start[0], code.begin() + start[1]}, 0, addr_of("named")));
  for (unw_dyn_info_t& info : named) ASSERT_TRUE(register_procedure(&info));
  expect_right_in("names alone", code, {0.5});
  for (unw_dyn_info_t& info : named) ASSERT_TRUE(cancel_procedure(&info));
}

/// outer: call inner; ret. inner: sub $24,%rsp; call helper; add $24,%rsp; ret.
constexpr std::array<std::uint8_t, 64> k_outer_and_inner = {
    0xe8, 0x0b, 0x00, 0x00, 0x00, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0x48, 0x83, 0xec,
    0x18, 0xe8, 0x0b, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x18, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xc3,
};
constexpr Addr k_behind_call_of_inner = 5, k_behind_call_of_helper = 25;

/// A walk that came to the code with another stack, as bold ones do, has found no way out. The next one has the same
/// SP.
// covers: LU20
TEST(UnknownCode, LeadsToItsCallerOnceTheStackSaysSo) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, k_outer_and_inner.data(), k_outer_and_inner.size());
  ASSERT_EQ(::mprotect(memory, 4096, PROT_READ | PROT_EXEC), 0);
  const Arch& arch = *host_arch();
  std::array<Addr, 64> stack{};
  RegisterFile registers;
  registers.set(arch.column(arch.pc), addr_of(memory) + k_behind_call_of_helper);
  registers.set(arch.column(arch.sp), addr_of(stack.data()));
  const auto caller = [&]() -> std::optional<Addr> {
    Cursor cursor(local_space(), registers, Cursor::Top::returned_to);
    const auto moved = cursor.step();
    return moved && *moved ? std::optional(cursor.pc()) : std::nullopt;
  };
  const Addr right = addr_of(memory) + k_behind_call_of_inner;
  for (int i = 0; i < 3; ++i) {
    stack[3] = 0;
    for (int again = 0; again < 2; ++again) EXPECT_EQ(caller(), std::nullopt);
    stack[3] = right;
    for (int again = 0; again < 2; ++again) EXPECT_EQ(caller(), right) << i;
  }
  EXPECT_EQ(::munmap(memory, 4096), 0);
}

struct Variant {
  const char* name;
  void (*run)();
};

constexpr Variant k_variants[] = {
#define UNKNOWN(variant) {#variant, [] { g_sum = g_sum + run_##variant(&helper); }},
#include "tests/fallback/data/unknown_code.def"
#undef UNKNOWN
};

class CompiledUnknownCode : public testing::TestWithParam<Variant> {};

// covers: LU20
TEST_P(CompiledUnknownCode, HasNoWrongCaller) { expect_right(GetParam().name, GetParam().run, {0.9, true}); }

INSTANTIATE_TEST_SUITE_P(Variants, CompiledUnknownCode, testing::ValuesIn(k_variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jitunwind::test

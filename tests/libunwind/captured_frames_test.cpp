// Compares unw_getcontext, unw_backtrace and walks with frames whose addresses and stack pointers are known from
// elsewhere.
#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "tests/libunwind/captured_frames.h"
#include "tests/support/jit_frame.h"
#include "tests/support/pcs_from.h"

extern "C" {
// captured_frame.inc, and the places where the linker has put each copy.
#define CAPTURED(name)              \
  void name(captured_frame* frame); \
  extern const char __start_code_of_##name[], __stop_code_of_##name[];
CAPTURED(captured_by_c_o0)
CAPTURED(captured_by_c_o3)
CAPTURED(captured_by_cpp_o0)
CAPTURED(captured_by_cpp_o3)
#undef CAPTURED

int jitunwind_test_show_backtrace(char* out, std::size_t size);  // libunwind_abi_test.c
int jitunwind_test_local_only_pcs(unw_word_t* pcs, int size);    // libunwind_local_only.c
int jitunwind_test_calls_backtrace(void** addresses, int size);
void jitunwind_test_behind_backtrace();
}

namespace jitunwind::test {
namespace {

struct Captured {
  const char* name;
  void (*function)(captured_frame*);
  const char *begin, *end;
};
#define CAPTURED(name) \
  Captured { #name, name, __start_code_of_##name, __stop_code_of_##name }
class CapturedFrames : public testing::TestWithParam<Captured> {};
INSTANTIATE_TEST_SUITE_P(Compiled, CapturedFrames,
                         testing::Values(CAPTURED(captured_by_c_o0), CAPTURED(captured_by_c_o3),
                                         CAPTURED(captured_by_cpp_o0), CAPTURED(captured_by_cpp_o3)),
                         [](const auto& info) { return info.param.name; });
#undef CAPTURED

/// The context has the registers of the calling function, from an inline function without a frame. The compiler's stack
/// pointer is the witness.
// covers: LU01 LU02 LU04 RG05
TEST_P(CapturedFrames, AreTheCallersOwn) {
  captured_frame frame{};
  GetParam().function(&frame);
  EXPECT_EQ(frame.returned, 0);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local(&cursor, &frame.context), 0);
  unw_word_t ip = 0, sp = 0;
  ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
  ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_SP, &sp), 0);
  EXPECT_GT(ip, reinterpret_cast<unw_word_t>(GetParam().begin));
  EXPECT_LT(ip, reinterpret_cast<unw_word_t>(GetParam().end));
  EXPECT_EQ(sp, frame.sp);
  std::array<char, 64> name;
  ASSERT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), nullptr), 0);
  EXPECT_STREQ(name.data(), GetParam().name);
}

asm(R"(
        .text
        .globl jitunwind_test_calls_backtrace
        .type jitunwind_test_calls_backtrace, %function
jitunwind_test_calls_backtrace:
        .cfi_startproc
)"
#if defined(__aarch64__)
    R"(
        stp x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x30, 8
        bl unw_backtrace
        .globl jitunwind_test_behind_backtrace
jitunwind_test_behind_backtrace:
        ldp x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x30
)"
#else
    R"(
        sub $8, %rsp
        .cfi_adjust_cfa_offset 8
        call unw_backtrace@PLT
        .globl jitunwind_test_behind_backtrace
jitunwind_test_behind_backtrace:
        add $8, %rsp
        .cfi_adjust_cfa_offset -8
)"
#endif
    R"(
        ret
        .cfi_endproc
        .size jitunwind_test_calls_backtrace, . - jitunwind_test_calls_backtrace
)");

/// The first entry is the address behind the call.
// covers: LU23
TEST(Backtraces, BeginWithTheirCaller) {
  std::array<void*, 64> addresses{};
  const int count = jitunwind_test_calls_backtrace(addresses.data(), static_cast<int>(addresses.size()));
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  const auto pcs = pcs_from(cursor);
  ASSERT_EQ(static_cast<std::size_t>(count), pcs.size() + 1);
  EXPECT_EQ(addresses[0], reinterpret_cast<void*>(&jitunwind_test_behind_backtrace));
  for (std::size_t i = 1; i < pcs.size(); ++i) EXPECT_EQ(reinterpret_cast<unw_word_t>(addresses[i + 1]), pcs[i]) << i;
  std::array<void*, 2> few{};
  EXPECT_EQ(jitunwind_test_calls_backtrace(few.data(), 1), 1);
  EXPECT_EQ(few[0], reinterpret_cast<void*>(&jitunwind_test_behind_backtrace));
  EXPECT_EQ(few[1], nullptr);
}

struct IpAndSp {
  unw_word_t ip, sp;
  friend bool operator==(const IpAndSp&, const IpAndSp&) = default;
  friend std::ostream& operator<<(std::ostream& out, const IpAndSp& frame) {
    return out << std::hex << frame.ip << " " << frame.sp << std::dec;
  }
};

/// Returns this function's callers as the system's unwinder finds them.
[[gnu::always_inline]] inline std::vector<IpAndSp> by_the_system() {
  std::vector<IpAndSp> frames;
  const auto add = [](_Unwind_Context* frame, void* to) {
    if (const auto ip = _Unwind_GetIP(frame))
      static_cast<std::vector<IpAndSp>*>(to)->push_back({ip, _Unwind_GetCFA(frame)});
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(add, &frames);
  return frames;
}

template <int Level>
[[gnu::noinline]] void at_depth(void (*look)()) {
  volatile char room[16 * Level + 1];
  room[0] = 0;
  if constexpr (Level > 0)
    at_depth<Level - 1>(look);
  else
    look();
  asm volatile("" ::: "memory");  // no tail call
  (void)room[0];
}

std::vector<IpAndSp> g_expected, g_found;

/// The example of the manual, compiled as C, and the same loop here: every frame's IP and SP agree.
// covers: LU15 RG05
TEST(Walks, HaveTheIpsAndSpsOfTheSystemUnwinder) {
  at_depth<20>([] {
    g_expected = by_the_system();
    unw_context_t context;
    unw_getcontext(&context);
    unw_cursor_t cursor;
    unw_init_local(&cursor, &context);
    do {
      IpAndSp frame{};
      EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &frame.ip), 0);
      EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_SP, &frame.sp), 0);
      g_found.push_back(frame);
    } while (unw_step(&cursor) > 0);
  });
  ASSERT_GT(g_expected.size(), 22u);
  ASSERT_EQ(g_found.size(), g_expected.size());
  EXPECT_EQ(g_found[0].sp, g_expected[0].sp) << "of another call in the same function";
  EXPECT_EQ(std::vector(g_found.begin() + 1, g_found.end()), std::vector(g_expected.begin() + 1, g_expected.end()));

  static std::array<char, 16384> text;
  static int lines;
  at_depth<20>([] {
    g_expected = by_the_system();
    lines = jitunwind_test_show_backtrace(text.data(), text.size());
  });
  ASSERT_EQ(static_cast<std::size_t>(lines), g_expected.size());
  std::istringstream in(text.data());
  for (std::size_t i = 0; i < g_expected.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    std::ostringstream expected;
    expected << std::hex << "ip = " << g_expected[i].ip << ", sp = " << g_expected[i].sp;
    if (i > 0) {
      EXPECT_EQ(line, expected.str()) << i;
    }
  }
}

struct TwoWalks {
  std::vector<unw_word_t> generic, local;
};

/// Both see the same registered code.
// covers: LU16 LU18
TEST(LocalOnly, WalksAsTheGenericNamesDo) {
  const JitFrame frame;
  TwoWalks walks;
  frame(
      [](void* into) -> void* {
        auto& both = *static_cast<TwoWalks*>(into);
        unw_context_t context;
        unw_getcontext(&context);
        unw_cursor_t cursor;
        unw_init_local(&cursor, &context);
        both.generic = pcs_from(cursor);
        both.local.resize(64);
        both.local.resize(static_cast<std::size_t>(jitunwind_test_local_only_pcs(both.local.data(), 64)));
        return nullptr;
      },
      &walks);
  ASSERT_EQ(walks.local.size(), walks.generic.size() + 1);
  EXPECT_EQ(std::count(walks.generic.begin(), walks.generic.end(), frame.return_address()), 1);
  EXPECT_EQ(std::vector(walks.local.begin() + 2, walks.local.end()),
            std::vector(walks.generic.begin() + 1, walks.generic.end()));
}

}  // namespace
}  // namespace jitunwind::test

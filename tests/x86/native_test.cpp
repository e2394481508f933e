// The machine's own stack on x86 with 32 bits: registers captured, walked back to, resumed with.
#include <gtest/gtest.h>
#include <libunwind.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/resume.h"
#include "tests/support/jit_frame.h"
#include "tests/support/own_stack.h"
#include "tests/x86/frames.h"

namespace jitunwind::test {
namespace {

/// Saves and overwrites all registers that calls preserve.
[[gnu::noinline]] void lose_registers(const Body& body) {
  asm volatile("xorl %%ebx, %%ebx; xorl %%esi, %%esi; xorl %%edi, %%edi" ::: "ebx", "esi", "edi");
  body();
  asm volatile("" ::: "memory");
}

X86Arrival in_magic_frame(Body body) {
  X86Arrival arrival{};
  x86_magic(&call_body, &body, &arrival);
  return arrival;
}

constexpr std::array<RegNum, 4> k_preserved = {3, 5, 6, 7};  // ebx, ebp, esi, edi

void expect_magic(const Cursor& cursor) {
  for (const RegNum reg : k_preserved) EXPECT_EQ(*cursor.get(reg), k_x86_magic + reg) << reg;
}

Cursor magic_cursor() { return cursor_at_pc(address_of(x86_magic_behind_call)); }

/// A way in which a handler is called, and the function that it returns to.
struct Kind {
  const char* name;
  bool has_siginfo;
  void (*restorer)();  ///< null: what the kernel has
};
constexpr Kind k_kinds[] = {{"with SA_SIGINFO", true, nullptr},
                            {"without SA_SIGINFO", false, nullptr},
                            {"with SA_SIGINFO, to code without tables", true, &x86_restore_rt},
                            {"without SA_SIGINFO, to code without tables", false, &x86_restore}};

using Mask = std::uint64_t;
Mask mask_now() {
  Mask mask = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}
constexpr Mask bit(int signal) { return Mask{1} << (signal - 1); }
constexpr int k_late_signal = 50;  // in the upper half of a mask

/// The kernel's struct sigaction (asm/signal.h).
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  Mask mask;
};

class OnSignal {
 public:
  using Handler = std::function<void(const void* ucontext)>;
  /// The handler's ucontext is null without SA_SIGINFO. It blocks two more signals.
  OnSignal(int signal, const Kind& kind, Handler handler) : signal_(signal) {
    handler_ = std::move(handler);
    constexpr unsigned long k_has_restorer = 0x04000000;
    KernelAction action{};
    action.flags =
        (kind.has_siginfo ? static_cast<unsigned long>(SA_SIGINFO) : 0) | (kind.restorer ? k_has_restorer : 0);
    // The kernel sees only one address in either case.
    const auto taking_all = reinterpret_cast<void (*)(int)>(reinterpret_cast<void (*)()>(&with_siginfo));
    action.handler = kind.has_siginfo ? taking_all : &without_siginfo;
    action.restorer = kind.restorer;
    action.mask = bit(SIGUSR2) | bit(k_late_signal);
    ::syscall(SYS_rt_sigaction, signal, &action, &before_, sizeof action.mask);
  }
  ~OnSignal() { ::syscall(SYS_rt_sigaction, signal_, &before_, nullptr, sizeof before_.mask); }
  OnSignal(const OnSignal&) = delete;
  OnSignal& operator=(const OnSignal&) = delete;

 private:
  static void with_siginfo(int, siginfo_t*, void* ucontext) { handler_(ucontext); }
  static void without_siginfo(int) { handler_(nullptr); }
  static inline Handler handler_;
  int signal_;
  KernelAction before_;
};

/// Lets the interrupted code continue behind its trap, once the handler has returned.
void skip_trap(const char* trap) {
  Cursor cursor = cursor_at_pc(address_of(trap));
  EXPECT_TRUE(cursor.set(cursor.space().arch.pc, cursor.pc() + k_trap_size));
}

// covers: XP04
TEST(X86, IsTheCpuOfThisLibrary) { EXPECT_EQ(host_arch(), &arch::x86); }

/// The registers are captured in the frame that has their values. Frames in between may have saved them, so walks would
/// not tell.
// covers: XP04
TEST(X86, CapturesRegistersThatCallsPreserve) {
  ucontext_t context{};
  const auto capture = reinterpret_cast<void (*)(void*)>(reinterpret_cast<void (*)()>(&jitunwind_capture_context));
  X86Arrival arrival{};
  x86_magic(capture, &context, &arrival);
  const auto held = [&](int reg) { return static_cast<std::uint32_t>(context.uc_mcontext.gregs[reg]); };
  EXPECT_EQ(held(REG_EBX), k_x86_magic + 3);
  EXPECT_EQ(held(REG_EBP), k_x86_magic + 5);
  EXPECT_EQ(held(REG_ESI), k_x86_magic + 6);
  EXPECT_EQ(held(REG_EDI), k_x86_magic + 7);
  EXPECT_EQ(held(REG_EAX), 0u);
  EXPECT_EQ(held(REG_EIP), address_of(x86_magic_behind_call));
  EXPECT_TRUE(preserved_are_magic(arrival));
}

/// The accessor writes the register's 4 bytes, and not the register behind it.
// covers: XP04
TEST(X86, LocalAccessorsKnowHowLargeARegisterIs) {
  const unw_accessors_t& own = *unw_get_accessors(unw_local_addr_space);
  unw_context_t context;
  unw_getcontext(&context);
  const auto& gregs = reinterpret_cast<const ucontext_t&>(context).uc_mcontext.gregs;
  const auto held = [&](int reg) { return static_cast<std::uint32_t>(gregs[reg]); };
  const std::uint32_t behind = held(REG_EDX);
  unw_word_t value = 0x1122'3344;
  ASSERT_EQ(own.access_reg(unw_local_addr_space, UNW_X86_EBX, &value, 1, &context), 0);
  EXPECT_EQ(held(REG_EBX), 0x1122'3344u);
  EXPECT_EQ(held(REG_EDX), behind);
  value = ~unw_word_t{0};
  ASSERT_EQ(own.access_reg(unw_local_addr_space, UNW_X86_EBX, &value, 0, &context), 0);
  EXPECT_EQ(value, 0x1122'3344u);
}

// covers: XP04
TEST(X86, WalksBackToRegistersThatCallsPreserve) {
  int walks = 0;
  const X86Arrival arrival = in_magic_frame([&] {
    lose_registers([&] {
      expect_magic(magic_cursor());
      ++walks;
    });
  });
  EXPECT_EQ(walks, 1);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

/// Returns the return addresses by a cursor, without the innermost one, which differs between two walks.
std::vector<Addr> callers_by_cursor() {
  std::vector<Addr> all;
  for (const Frame& frame : walk_here()) all.push_back(frame.pc());
  return {all.begin() + 1, all.end()};
}
/// Compares both interfaces, the first time and with kept rules.
void expect_same_callers(const std::vector<Addr>& expected, int (*backtrace)(void**, int)) {
  for (int round = 0; round < 4; ++round) {
    std::array<void*, 64> all;
    const auto count = static_cast<std::size_t>(backtrace(all.data(), all.size()));
    std::vector<Addr> found;
    for (void* const pc : std::span(all).first(count)) found.push_back(reinterpret_cast<std::uintptr_t>(pc));
    const auto from = std::ranges::find(found, expected[1]);
    EXPECT_EQ(std::vector(from, found.end()), std::vector(expected.begin() + 1, expected.end())) << round;
  }
}
int whole_backtrace(void** into, int size) { return jitunwind_backtrace(into, size, 0); }
int libunwind_backtrace(void** into, int size) { return unw_backtrace(into, size); }

// covers: XP04
TEST(X86, WalksThroughDescribedCode) {
  const JitFrame jit;
  int walks = 0;
  const X86Arrival arrival = in_magic_frame([&] {
    Body body = [&] {
      const std::vector<Addr> callers = callers_by_cursor();
      EXPECT_NE(std::ranges::find(callers, jit.return_address()), callers.end());
      EXPECT_NE(std::ranges::find(callers, address_of(x86_magic_behind_call)), callers.end());
      expect_same_callers(callers, &whole_backtrace);
      expect_same_callers(callers, &libunwind_backtrace);
      expect_magic(magic_cursor());
      ++walks;
    };
    jit([](void* argument) -> void* { return call_body(argument), nullptr; }, &body);
  });
  EXPECT_EQ(walks, 1);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: XP04
/// A word of a descriptor is longer than a pointer, whose sign C extends.
TEST(X86, RefusesAddressesOfMoreBitsThanItHas) {
  unw_dyn_info_t info{};
  info.start_ip = 0xffff'ffff'f700'0000;
  info.end_ip = info.start_ip + 16;
  const Status refused = register_procedure(&info);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::e_range);
  EXPECT_NE(refused.error().text().find("cast pointers to uintptr_t first"), std::string::npos)
      << refused.error().text();
  info.start_ip = 0xffff'fff0;  // the last that there are
  info.end_ip = std::uint64_t{1} << 32;
  ASSERT_TRUE(register_procedure(&info));
  EXPECT_TRUE(cancel_procedure(&info));
}

TEST(X86, WalksByRowsOfATable) {
  const JitFrame jit("cfa=SP+64 ebx=[cfa-16] ebp=[cfa-24] ra=[cfa-8]");  // host_row(): half of it
  int walks = 0;
  const X86Arrival arrival = in_magic_frame([&] {
    Body body = [&] {
      const std::vector<Addr> callers = callers_by_cursor();
      EXPECT_NE(std::ranges::find(callers, jit.return_address()), callers.end());
      EXPECT_NE(std::ranges::find(callers, address_of(x86_magic_behind_call)), callers.end());
      expect_same_callers(callers, &whole_backtrace);
      ++walks;
    };
    jit([](void* argument) -> void* { return call_body(argument), nullptr; }, &body);
  });
  EXPECT_EQ(walks, 1);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: XP04
TEST(X86, WalksByTheInterfaceOfLibunwind) {
  const JitFrame jit;
  int walks = 0;
  in_magic_frame([&] {
    Body body = [&] {
      unw_context_t context;
      unw_cursor_t cursor;
      ASSERT_EQ(unw_getcontext(&context), 0);
      ASSERT_EQ(unw_init_local(&cursor, &context), 0);
      unw_word_t ip = 0;
      bool met_jit = false;
      while (ip != address_of(x86_magic_behind_call)) {
        ASSERT_GT(unw_step(&cursor), 0);
        ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
        met_jit = met_jit || ip == jit.return_address();
      }
      EXPECT_TRUE(met_jit);
      const int order[] = {UNW_X86_EBX, UNW_X86_EBP, UNW_X86_ESI, UNW_X86_EDI};
      for (std::size_t i = 0; i < k_preserved.size(); ++i) {
        unw_word_t value = 0;
        EXPECT_EQ(unw_get_reg(&cursor, order[i], &value), 0);
        EXPECT_EQ(value, k_x86_magic + k_preserved[i]);
      }
      std::array<char, 64> name;
      unw_word_t offset = 0;
      EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), &offset), 0);
      EXPECT_STREQ(name.data(), "x86_magic");
      ++walks;
    };
    jit([](void* argument) -> void* { return call_body(argument), nullptr; }, &body);
  });
  EXPECT_EQ(walks, 1);
}

// covers: RS01 RS02 RS04
TEST(X86, ResumesWithAllThatCallsPreserve) {
  const JitFrame jit;
  const X86Arrival arrival = in_magic_frame([&] {
    Body body = [] {
      lose_registers([] {
        Cursor cursor = magic_cursor();
        EXPECT_TRUE(cursor.set(0, 7));
        EXPECT_TRUE(cursor.set(2, 8));
        EXPECT_TRUE(cursor.set(cursor.space().arch.pc, address_of(x86_magic_landing)));
        const Status failed = resume(cursor);
        ADD_FAILURE() << failed.error().what;
      });
    };
    jit([](void* argument) -> void* { return call_body(argument), nullptr; }, &body);
  });
  EXPECT_EQ(arrival.at_landing, 1u);
  EXPECT_EQ(arrival.eax, 7u);
  EXPECT_EQ(arrival.edx, 8u);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RG04
TEST(X86, WalksOutOfHandlers) {
  for (const Kind& kind : k_kinds) {
    SCOPED_TRACE(kind.name);
    int walks = 0;
    const OnSignal on(SIGILL, kind, [&](const void* ucontext) {
      const std::vector<Addr> callers = callers_by_cursor();
      EXPECT_NE(std::ranges::find(callers, address_of(x86_leaf_trap)), callers.end());
      EXPECT_NE(std::ranges::find(callers, address_of(x86_magic_behind_call)), callers.end());
      expect_same_callers(callers, &whole_backtrace);
      if (ucontext) {
        const std::vector<std::string> names = names_at(ucontext, 2);
        EXPECT_EQ(names[0], "x86_leaf");
        EXPECT_NE(names[1].find("WalksOutOfHandlers"), std::string::npos) << names[1];
      }
      EXPECT_EQ(*cursor_at_pc(address_of(x86_leaf_trap)).get(0), 41u);
      skip_trap(x86_leaf_trap);
      ++walks;
    });
    const X86Arrival arrival = in_magic_frame([] { EXPECT_EQ(x86_leaf(41), 42u); });
    EXPECT_EQ(walks, 1);
    EXPECT_TRUE(preserved_are_magic(arrival));
  }
}

/// A handler's return address is recognised by its bytes alone, and these are not a trampoline's.
// covers: RG04
TEST(X86, AWalkEndsAtATrampolineThatIsNotKnown) {
  const Kind kind{"to another trampoline", true, &x86_restore_otherwise};
  Addr last = 0, last_listed = 0;
  StopReason stop = StopReason::none;
  const OnSignal on(SIGUSR1, kind, [&](const void*) {
    Walk walk = walk_here();
    for (const Frame& frame : walk) last = frame.pc();
    stop = walk.stop_reason();
    std::array<void*, 64> list;
    last_listed = reinterpret_cast<std::uintptr_t>(list[backtrace(list) - 1]);
  });
  ::raise(SIGUSR1);
  EXPECT_EQ(last, reinterpret_cast<std::uintptr_t>(&x86_restore_otherwise));
  EXPECT_EQ(stop, StopReason::no_info);
  EXPECT_EQ(last_listed, last);
}

[[gnu::noinline]] void call_what_traps(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

// covers: XP04
TEST(X86, WalksFromTheFirstInstructionOfAFunction) {
  std::vector<std::string> names;
  const OnSignal on(SIGILL, k_kinds[0], [&](const void* ucontext) {
    names = names_at(ucontext, 2);
    skip_trap(reinterpret_cast<const char*>(&x86_entry));
  });
  call_what_traps(&x86_entry);
  ASSERT_EQ(names.size(), 2u) << names.back();
  EXPECT_EQ(names[0], "x86_entry");
  EXPECT_NE(names[1].find("call_what_traps"), std::string::npos) << names[1];
}

X86All distinct_registers() {
  X86All all{};
  std::uint32_t value = 0x01010101;
  for (std::uint32_t& r : all.general) r = value += 0x11;
  for (auto& xmm : all.vector)
    for (std::uint32_t& part : xmm) part = value += 0x0113'0011;
  all.x87 = 1.25;
  return all;
}

void expect_same(const X86All& now) {
  const X86All before = distinct_registers();
  for (std::size_t n = 0; n < 8; ++n) EXPECT_EQ(now.general[n], before.general[n]) << n;
  for (std::size_t n = 0; n < 8; ++n) EXPECT_EQ(now.vector[n], before.vector[n]) << "xmm" << n;
  EXPECT_EQ(now.x87, before.x87);
}

// covers: RS03
TEST(X86, ResumesInterruptedCodeWithEveryRegister) {
  for (const Kind& kind : k_kinds) {
    SCOPED_TRACE(kind.name);
    const OnSignal on(SIGILL, kind, [&](const void*) {
      EXPECT_EQ(mask_now() & bit(k_late_signal), bit(k_late_signal)) << "or nothing is tested";
      lose_registers([] {
        Cursor cursor = cursor_at_pc(address_of(x86_all_trap));
        EXPECT_TRUE(cursor.set(cursor.space().arch.pc, cursor.pc() + k_trap_size));
        const Status failed = resume(cursor);
        ADD_FAILURE() << failed.error().what;
      });
    });
    const Mask before = mask_now();
    X86All all = distinct_registers();
    x86_all(&all);
    expect_same(all);
    EXPECT_EQ(mask_now(), before);
  }
}

/// Signals that were blocked when the signal came stay blocked, in either half of a mask.
class Blocked {
 public:
  explicit Blocked(Mask mask) { ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &before_, sizeof mask); }
  ~Blocked() { ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  Mask before_ = 0;
};

// covers: RS03
TEST(X86, ResumesAFrameAboveAHandler) {
  const Blocked blocked(bit(SIGWINCH) | bit(k_late_signal + 1));
  for (const Kind& kind : k_kinds) {
    SCOPED_TRACE(kind.name);
    const OnSignal on(SIGUSR1, kind, [&](const void*) { lose_registers([] { (void)resume(magic_cursor()); }); });
    const Mask before = mask_now();
    const X86Arrival arrival = in_magic_frame([] {
      lose_registers([] { ::raise(SIGUSR1); });
      ADD_FAILURE() << "the handler returned";
    });
    EXPECT_EQ(arrival.at_landing, 0u);
    EXPECT_TRUE(preserved_are_magic(arrival));
    EXPECT_EQ(mask_now(), before);
  }
}

}  // namespace
}  // namespace jitunwind::test

// The machine's own stack on AArch64: registers captured, walked back to, resumed with.
#include <gtest/gtest.h>
#include <libunwind.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/resume.h"
#include "tests/aarch64/frames.h"
#include "tests/support/jit_frame.h"
#include "tests/support/own_stack.h"

namespace jitunwind::test {
namespace {

/// Saves and overwrites all registers that calls preserve.
[[gnu::noinline]] void lose_registers(const Body& body) {
  asm volatile("fmov d8, xzr; fmov d9, xzr; fmov d10, xzr; fmov d15, xzr; mov x19, #0; mov x28, #0" ::
                   : "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "x19", "x20", "x21", "x22", "x23", "x24",
                     "x25", "x26", "x27", "x28");
  body();
  asm volatile("" ::: "memory");
}

A64Arrival in_magic_frame(Body body) {
  A64Arrival arrival{};
  a64_magic(&call_body, &body, &arrival);
  return arrival;
}

/// The frame behind the call of a64_magic().
Cursor magic_cursor() { return cursor_at_pc(address_of(a64_magic_behind_call)); }

class OnSignal {
 public:
  using Handler = std::function<void(const void* ucontext)>;
  OnSignal(int signal, Handler handler) : signal_(signal) {
    handler_ = std::move(handler);
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    action.sa_sigaction = [](int, siginfo_t*, void* ucontext) { handler_(ucontext); };
    ::sigaction(signal, &action, &before_);
  }
  ~OnSignal() { ::sigaction(signal_, &before_, nullptr); }

 private:
  static inline Handler handler_;
  int signal_;
  struct sigaction before_;
};

/// The registers are captured in the frame that has their values. Frames in between may have saved them, so walks would
/// not tell.
TEST(Aarch64, CapturesRegistersThatCallsPreserve) {
  alignas(16) ucontext_t context{};
  const auto capture = reinterpret_cast<void (*)(void*)>(reinterpret_cast<void (*)()>(&jitunwind_capture_context));
  A64Arrival arrival{};
  a64_magic(capture, &context, &arrival);
  for (unsigned n = 19; n <= 29; ++n) EXPECT_EQ(context.uc_mcontext.regs[n], k_a64_magic + n) << "x" << n;
  EXPECT_EQ(context.uc_mcontext.regs[0], 0u);
  EXPECT_EQ(context.uc_mcontext.pc, address_of(a64_magic_behind_call));
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RG14
TEST(Aarch64, WalksBackToRegistersThatCallsPreserve) {
  int walks = 0;
  const A64Arrival arrival = in_magic_frame([&] {
    lose_registers([&] {
      const Cursor cursor = magic_cursor();
      for (unsigned n = 19; n <= 29; ++n) EXPECT_EQ(*cursor.get(static_cast<RegNum>(n)), k_a64_magic + n) << "x" << n;
      for (unsigned n = 8; n <= 15; ++n)
        EXPECT_EQ(*cursor.get(static_cast<RegNum>(64 + n)), k_a64_magic + n) << "d" << n;
      ++walks;
    });
  });
  EXPECT_EQ(walks, 1);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RS01 RS02 RS04
TEST(Aarch64, ResumesWithAllThatCallsPreserve) {
  const JitFrame jit;
  const A64Arrival arrival = in_magic_frame([&] {
    Body body = [] {
      lose_registers([] {
        Cursor cursor = magic_cursor();
        EXPECT_TRUE(cursor.set(0, 7));
        EXPECT_TRUE(cursor.set(1, 8));
        EXPECT_TRUE(cursor.set(cursor.space().arch.pc, address_of(a64_magic_landing)));
        const Status failed = resume(cursor);
        ADD_FAILURE() << failed.error().what;
      });
    };
    jit([](void* argument) -> void* { return call_body(argument), nullptr; }, &body);
  });
  EXPECT_EQ(arrival.at_landing, 1u);
  EXPECT_EQ(arrival.x0, 7u);
  EXPECT_EQ(arrival.x1, 8u);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

/// Continues at the next instruction.
void skip_trap(const void* ucontext) { static_cast<ucontext_t*>(const_cast<void*>(ucontext))->uc_mcontext.pc += 4; }

[[gnu::noinline]] void call_what_traps(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

// covers: RG14
TEST(Aarch64, WalksFromAFunctionWithoutFrame) {
  std::vector<std::string> names;
  std::vector<Addr> through_handler;
  const OnSignal on(SIGILL, [&](const void* ucontext) {
    names = names_at(ucontext, 3);
    for (const Frame& frame : walk_here()) through_handler.push_back(frame.pc());
    std::array<void*, 64> all;
    const auto count = static_cast<std::size_t>(jitunwind_backtrace(all.data(), all.size(), 0));
    EXPECT_EQ(count, through_handler.size());
    for (std::size_t i = 1; i < count && i < through_handler.size(); ++i)
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all[i]), through_handler[i]) << i;
    skip_trap(ucontext);
  });
  const A64Arrival arrival = in_magic_frame([] { EXPECT_EQ(a64_leaf(41), 42u); });
  ASSERT_EQ(names.size(), 3u) << names.back();
  EXPECT_EQ(names[0], "a64_leaf");
  EXPECT_NE(names[1].find("WalksFromAFunctionWithoutFrame"), std::string::npos) << names[1];
  EXPECT_NE(std::ranges::find(through_handler, address_of(a64_leaf_trap)), through_handler.end());
  EXPECT_NE(std::ranges::find(through_handler, address_of(a64_magic_behind_call)), through_handler.end());
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RG14
TEST(Aarch64, WalksFromTheFirstInstructionOfAFunction) {
  std::vector<std::string> names;
  const OnSignal on(SIGILL, [&](const void* ucontext) {
    names = names_at(ucontext, 2);
    skip_trap(ucontext);
  });
  call_what_traps(&a64_entry);
  ASSERT_EQ(names.size(), 2u) << names.back();
  EXPECT_EQ(names[0], "a64_entry");
  EXPECT_NE(names[1].find("call_what_traps"), std::string::npos) << names[1];
}

A64All distinct_registers() {
  A64All all{};
  std::uint64_t value = 0x0101;
  for (std::uint64_t& x : all.general) x = value += 0x11;
  for (auto& q : all.vector)
    for (std::uint64_t& half : q) half = value += 0x0113'0000'0000'0011;
  return all;
}

/// The kernel's frame had x30 and all other registers.
void expect_same(const A64All& now) {
  const A64All before = distinct_registers();
  for (std::size_t n = 0; n < 31; ++n) EXPECT_EQ(now.general[n], before.general[n]) << "x" << n;
  for (std::size_t n = 0; n < 32; ++n) EXPECT_EQ(now.vector[n], before.vector[n]) << "q" << n;
}

// covers: RS03
TEST(Aarch64, ResumesInterruptedCodeWithEveryRegister) {
  const OnSignal on(SIGILL, [&](const void*) {
    lose_registers([] {
      for (const Frame& frame : walk_here()) {
        if (frame.pc() != address_of(a64_all_trap)) continue;
        Cursor cursor = frame.cursor();
        EXPECT_TRUE(cursor.set(cursor.space().arch.pc, frame.pc() + 4));
        const Status failed = resume(cursor);
        ADD_FAILURE() << failed.error().what;
      }
    });
  });
  A64All all = distinct_registers();
  a64_all(&all);
  expect_same(all);
}

// covers: RS03
TEST(Aarch64, ResumesAFrameAboveAHandler) {
  const OnSignal on(SIGUSR1, [&](const void*) { lose_registers([] { (void)resume(magic_cursor()); }); });
  const A64Arrival arrival = in_magic_frame([] {
    lose_registers([] { ::raise(SIGUSR1); });
    ADD_FAILURE() << "the handler returned";
  });
  EXPECT_EQ(arrival.at_landing, 0u);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RG04
TEST(Aarch64, KnowsVectorRegistersOfInterruptedCode) {
  const OnSignal on(SIGILL, [&](const void* ucontext) {
    const A64All before = distinct_registers();
    const auto expect_known = [&](const Cursor& cursor) {
      for (std::size_t n = 8; n <= 15; ++n)
        EXPECT_EQ(*cursor.get(static_cast<RegNum>(64 + n)), before.vector[n][0]) << "d" << n;
    };
    expect_known(walk_interrupted(ucontext).begin()->cursor());
    int found = 0;
    for (const Frame& frame : walk_here())
      if (frame.pc() == address_of(a64_all_trap)) expect_known(frame.cursor()), ++found;
    EXPECT_EQ(found, 1);
    skip_trap(ucontext);
  });
  A64All all = distinct_registers();
  a64_all(&all);
  expect_same(all);
}

// covers: RG14
TEST(Aarch64, WalksThroughSignedReturnAddresses) {
  struct Seen {
    std::uint64_t signature = 0;
    std::vector<Addr> by_cursor;
    std::vector<Addr> by_backtrace;
  } seen;
  const auto walk = [](void* argument) {
    auto* const out = static_cast<Seen*>(argument);
    for (const Frame& frame : walk_here()) {
      out->by_cursor.push_back(frame.pc());
      EXPECT_EQ(*frame.get(frame.cursor().space().arch.pc), frame.pc());
    }
    std::array<void*, 64> all;
    const int count = jitunwind_backtrace(all.data(), all.size(), 0);
    for (int i = 0; i < count; ++i)
      out->by_backtrace.push_back(reinterpret_cast<std::uintptr_t>(all[static_cast<std::size_t>(i)]));
  };
  struct Outer {
    Seen* seen;
    void (*walk)(void*);
  } outer{&seen, walk};
  const auto once_more = [](void* argument) {
    const auto* const o = static_cast<Outer*>(argument);
    o->seen->signature = a64_signed(o->walk, o->seen);
  };
  for (int round = 0; round < 3; ++round) {
    seen = {};
    (void)a64_signed(once_more, &outer);
    ASSERT_GT(seen.by_cursor.size(), 5u);
    EXPECT_EQ(std::vector(seen.by_cursor.begin() + 1, seen.by_cursor.end()),
              std::vector(seen.by_backtrace.begin() + 1, seen.by_backtrace.end()));
  }
  std::printf("signature %llx\n", static_cast<unsigned long long>(seen.signature));
}

/// The walk's frames from a64_scalable() on.
struct ScalableWalk {
  std::vector<Addr> pcs{};
  int by_backtrace = 0;
  StopReason stop = StopReason::none;
};

void expect_walk_of_scalable_vectors(std::uint64_t words) {
  ScalableWalk seen;
  const auto walk_it = [](void* into) {
    auto* const out = static_cast<ScalableWalk*>(into);
    Walk walk = walk_here();
    for (const Frame& frame : walk) out->pcs.push_back(frame.pc());
    out->stop = walk.stop_reason();
    std::array<void*, 64> all;
    out->by_backtrace = jitunwind_backtrace(all.data(), all.size(), 0);
  };
  a64_scalable(walk_it, &seen, words == 0 ? 2 : words);
  const auto frame = std::ranges::find(seen.pcs, address_of(a64_scalable_behind_call));
  ASSERT_NE(frame, seen.pcs.end());
  // No code has such frames on a CPU without such registers.
  EXPECT_EQ(seen.stop, words == 0 ? StopReason::broken : StopReason::outermost);
  EXPECT_EQ(seen.pcs.end() - frame > 3, words != 0);
  EXPECT_EQ(seen.pcs.size(), static_cast<std::size_t>(seen.by_backtrace));
}

TEST(NativeAarch64, WalksFramesOfScalableVectors) {
  for (int round = 0; round < 3; ++round) expect_walk_of_scalable_vectors(vector_words());
}

/// Each thread sets its own: PR_SVE_SET_VL of prctl(2).
TEST(NativeAarch64, WalksFramesOfScalableVectorsOfAThreadsOwnLength) {
  if (vector_words() == 0) return;  // no code has such frames
  std::set<std::uint64_t> lengths;
  for (const unsigned long bytes : {16, 32, 64})
    std::thread([&] {
      ASSERT_GE(::prctl(PR_SVE_SET_VL, bytes), 0);
      lengths.insert(vector_words());
      expect_walk_of_scalable_vectors(vector_words());
    }).join();
  EXPECT_GT(lengths.size(), 1u) << "this CPU has one length";
}

}  // namespace
}  // namespace jitunwind::test

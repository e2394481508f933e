// Walks from where a signal interrupts the kernel's object (vDSO), which has no call frame information on AArch64
// (arch/arm64/kernel/vdso/vdso.lds.S leaves it out) and may lie between the segments of the loader.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "jitunwind/sdk/walk.h"

namespace jitunwind::test {
namespace {

struct Samples {
  Addr object = ::getauxval(AT_SYSINFO_EHDR);
  std::size_t inside = 0;
  std::size_t complete = 0;
  std::size_t with_the_caller = 0;
  std::size_t wrong_names = 0;
  std::array<char, 256> first_why{};
} samples;

constexpr Addr k_most_bytes = 2 * 4096;

void take_sample(int, siginfo_t*, void* ucontext) {
  const Addr pc = static_cast<const ucontext_t*>(ucontext)->uc_mcontext.pc;
  if (pc - samples.object >= k_most_bytes) return;
  ++samples.inside;
  bool has_the_caller = false;
  Walk walk = walk_interrupted(ucontext);
  for (const Frame& frame : walk) {
    std::array<char, 128> text;
    const auto name = frame.raw_name(text);
    if (frame.depth() == 0 && name && !std::string_view(text.data()).starts_with("__kernel_")) ++samples.wrong_names;
    has_the_caller = has_the_caller || (name && std::string_view(text.data()) == "ask_the_clock");
  }
  samples.with_the_caller += has_the_caller;
  if (walk.stop_reason() == StopReason::outermost)
    ++samples.complete;
  else if (samples.first_why[0] == 0)
    std::strncpy(samples.first_why.data(), stop_reason_name(walk.stop_reason()), samples.first_why.size() - 1);
}

extern "C" [[gnu::noinline]] long ask_the_clock() {
  timespec time{};
  for (int i = 0; i < 1000; ++i) ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_nsec;
}

// covers: RG14
TEST(KernelsObject, IsWalkedFromWhereverItIsInterrupted) {
  ASSERT_NE(samples.object, 0u);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_sigaction = take_sample;
  ASSERT_EQ(::sigaction(SIGPROF, &action, nullptr), 0);
  const itimerval often{{0, 1000}, {0, 1000}}, never{};
  ASSERT_EQ(::setitimer(ITIMER_PROF, &often, nullptr), 0);
  while (samples.inside < 500) (void)ask_the_clock();
  ::setitimer(ITIMER_PROF, &never, nullptr);
  EXPECT_EQ(samples.complete, samples.inside) << samples.first_why.data();
  EXPECT_EQ(samples.with_the_caller, samples.inside);
  EXPECT_EQ(samples.wrong_names, 0u);
}

}  // namespace
}  // namespace jitunwind::test

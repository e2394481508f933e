// Addresses are named in signal handlers while other threads, and the interrupted one, register and cancel code.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/builders/registration.h"
#include "tests/support/jit_frame.h"
#include "tests/support/painted_stack.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_first = 0x20000000;
constexpr unsigned k_places = 512;

std::atomic<unsigned> wrong{0}, named{0};
std::atomic<int> nowhere{-1};

void* place(unsigned i) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(k_first + 64 * (i % k_places))); }

/// A place has one name at any time, or is not registered.
void name_some(unsigned from) noexcept {
  for (unsigned i = from; i != from + 8; ++i) {
    Dl_info info{};
    if (::dladdr(place(i), &info) == 0) continue;
    named.fetch_add(1, std::memory_order_relaxed);
    std::array<char, 16> expected{"place_000"};
    unsigned number = i % k_places;
    for (std::size_t digit = 8; digit != 5; --digit, number /= 10)
      expected[digit] = static_cast<char>('0' + number % 10);
    const bool is_right =
        info.dli_sname != nullptr && std::strcmp(info.dli_sname, expected.data()) == 0 && info.dli_saddr == place(i);
    if (!is_right) wrong.fetch_add(1, std::memory_order_relaxed);
  }
  std::array<void*, 2> both{place(from), reinterpret_cast<void*>(&::qsort)};
  ::backtrace_symbols_fd(both.data(), 1, nowhere.load(std::memory_order_relaxed));
}

void register_and_cancel(unsigned seed, const std::atomic<bool>& ends) {
  const auto description = FrameCode::described("").build();
  std::vector<Registration> kept(k_places / 4);
  for (unsigned i = seed; !ends.load(std::memory_order_relaxed); ++i) {
    const unsigned number = 4 * (i * 7919 % (k_places / 4)) + seed;  // nobody else's
    const std::string digits = std::to_string(1000 + number).substr(1);
    kept[number / 4] = Registration();
    auto one = register_code(
        *description, {.start = k_first + 64 * number, .size = sizeof FrameCode::k_bytes, .name = "place_" + digits});
    if (one) kept[number / 4] = std::move(*one);
  }
}

void in_handler(int) {
  static std::atomic<unsigned> calls{0};
  const int kept = errno;
  name_some(calls.fetch_add(13, std::memory_order_relaxed));
  errno = kept;
}

TEST(SymbolizerStorms, NamesAreRightInHandlersAndBesideChanges) {
  nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = in_handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_PROF, &often, nullptr);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i != 3; ++i)
    threads.emplace_back([&ends, i] {
      // The handler has a small stack here.
      std::vector<char> stack(size_of_small_stack());
      const stack_t own{stack.data(), 0, stack.size()};
      ::sigaltstack(&own, nullptr);
      register_and_cancel(i, ends);
      const stack_t none{nullptr, SS_DISABLE, 0};
      ::sigaltstack(&none, nullptr);
    });
  const auto begin = std::time(nullptr);
  for (unsigned i = 0; std::time(nullptr) < begin + 2; i += 5) name_some(i);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
  ::signal(SIGPROF, SIG_IGN);
  ::close(nowhere);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(named, 1000u);
}

}  // namespace
}  // namespace jitunwind::test

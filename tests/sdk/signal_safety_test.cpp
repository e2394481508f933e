// Walks from a profiling signal in the C library's own code.
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/support/handlers.h"

extern "C" const void* _Unwind_Find_FDE(void* pc, void* bases);  // libgcc, unwind-dw2-fde.h

namespace {

struct Answers {
  int frames = 0;
  int last = 1;
};

/// Everything a handler may call.
Answers walk_all(unw_cursor_t& cursor) {
  Answers answers;
  int moved = 1;
  while (moved > 0) {
    std::array<char, 128> name;
    unw_word_t value = 0;
    unw_proc_info_t info;
    unw_save_loc_t location;
    (void)unw_get_proc_name(&cursor, name.data(), name.size(), &value);
    (void)unw_get_proc_info(&cursor, &info);
    (void)unw_get_reg(&cursor, 3, &value);
    (void)unw_get_save_loc(&cursor, 3, &location);
    (void)unw_is_signal_frame(&cursor);
    ++answers.frames;
    moved = unw_step(&cursor);
  }
  answers.last = moved;
  return answers;
}

std::atomic<unsigned> g_walks{0}, g_incomplete{0}, g_frames{0}, g_other_lengths{0};
timer_t g_timer{};

/// One shot, so that a machine slower than the interval still gets on.
void arm() {
  const itimerspec once{{0, 0}, {0, 100'000}};
  timer_settime(g_timer, 0, &once, nullptr);
}

void on_profile(int, siginfo_t*, void* context) {
  const int saved = errno;
  JITUNWIND_HANDLER_CONTEXT(from, context);
  unw_cursor_t cursor;
  unw_init_local2(&cursor, from.context, from.k_kind);
  const Answers answers = walk_all(cursor);
  ++g_walks;
  std::array<void*, 256> addresses;
  const int listed = unw_backtrace2(addresses.data(), 256, from.context, from.k_kind);
  if (listed != std::min(answers.frames, 256)) ++g_other_lengths;
  if (unw_backtrace(addresses.data(), 256) < 2) ++g_other_lengths;
  if (g_walks % 16 == 0) unw_flush_cache(unw_local_addr_space, 0, 0);
  g_frames += static_cast<unsigned>(answers.frames);
  if (answers.last != 0) {
    unw_word_t pc = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    // Where nothing describes the code, no walk can go on: _init and frame_dummy of every library are such code. The
    // system's unwinder is the witness that it knows nothing of the pc either.
    struct {
      void* bases[3];
    } bases{};
    if (_Unwind_Find_FDE(reinterpret_cast<void*>(pc), &bases)) ++g_incomplete;
  }
  arm();
  errno = saved;
}

/// A walk every 100 microseconds inside malloc, free, dlopen, dlclose and the C library's own code, while another
/// thread loads and unloads a library.
// covers: SF01 SF02 SF03 SF06
TEST(SignalSafety, ProfilingMallocAndDlopen) {
  struct sigaction action {
  }, old{};
  action.sa_sigaction = on_profile;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &old);
  std::atomic<bool> stop{false};
  std::thread loader([&] {
    sigset_t profile;
    sigemptyset(&profile);
    sigaddset(&profile, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &profile, nullptr);
    while (!stop) {
      if (void* library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL)) dlclose(library);
    }
  });
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = gettid();
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &g_timer), 0);
  arm();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  unsigned rounds = 0;
  while (std::chrono::steady_clock::now() < end) {
    void* blocks[64];
    for (std::size_t i = 0; i < 64; ++i) blocks[i] = std::malloc(16 + 97 * i);
    for (void* block : blocks) std::free(block);
    if (void* library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL)) dlclose(library);
    ++rounds;
  }
  timer_delete(g_timer);
  stop = true;
  loader.join();
  sigaction(SIGPROF, &old, nullptr);
  RecordProperty("walks", static_cast<int>(g_walks));
  EXPECT_GT(g_walks, 100u);
  EXPECT_GT(rounds, 10u);
  EXPECT_EQ(g_incomplete, 0u) << "of " << g_walks;
  EXPECT_EQ(g_other_lengths, 0u) << "of " << g_walks;
  EXPECT_GT(g_frames, 4 * g_walks);
}

}  // namespace

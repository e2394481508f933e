// Preloaded into an engine: a profiler's handler, which walks at 1 kHz, and a summary. SAMPLER_FRAMES: the number of
// frames of the engine's program in code made at run time while it works. SAMPLER_NAME: the name of such code ("*":
// any). SAMPLER_ENDS: walks need not be whole; others must end in such code, because the caller is not known.
// SAMPLER_LEAST: the number of samples that are needed. SAMPLER_FEW: so many samples may differ, or 1 % of them.
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/walk.h"
#include "tests/listen/written_for_perf.h"

namespace {

using namespace jitunwind;

std::atomic<unsigned> samples{0};  // with a frame in code made at run time
std::atomic<unsigned> whole{0};    // that reach the outermost function, without a guess
std::atomic<unsigned> as_deep{0};  // with as many frames in such code as the program has
std::atomic<unsigned> named{0};    // where the innermost frame in such code has the name
std::atomic<unsigned> guessed{0};  // that reach it with a guess, which is marked
std::atomic<unsigned> ended{0};    // that end in such code, and say why
std::atomic<Addr> latest_stop{0};
std::atomic<const char*> latest_why{""};
unsigned expected_frames = 0;
const char* expected_name = nullptr;
bool may_end = false, is_early = false;
unsigned least = 50, few = 12;
timer_t timer;
bool has_timer = false;

bool is_of_a_module(Addr at) {
  dl_find_object object;
  return _dl_find_object(reinterpret_cast<void*>(at), &object) == 0;
}

bool has_expected_name(const char* name) {
  return std::strcmp(expected_name, "*") == 0 ? *name != 0 : std::strstr(name, expected_name) != nullptr;
}

void report();

void sample(int, siginfo_t*, void* ucontext) {
  unsigned in_jit = 0;
  std::array<char, 200> name{};
  bool has_guess = false;
  Addr innermost = 0;
  Walk walk = walk_interrupted(ucontext);
  for (const Frame& frame : walk) {
    innermost = frame.address().lookup();
    if (!is_of_a_module(innermost) && in_jit++ == 0) (void)frame.raw_name(name);
    has_guess = has_guess || frame.is_guess();
  }
  if (in_jit == 0) return;
  ++samples;
  if (walk.stop_reason() == StopReason::outermost) {
    ++(has_guess ? guessed : whole);
  } else {
    latest_stop = walk.stop_error().at;
    latest_why = walk.stop_error().what;
    if (walk.stop_reason() == StopReason::no_info && !is_of_a_module(innermost) && *walk.stop_error().what != 0)
      ++ended;
  }
  if (in_jit == expected_frames) ++as_deep;
  if (expected_name != nullptr && has_expected_name(name.data())) ++named;
  if (is_early && samples == least) report();
}

/// Returns the thread of this process with that name; 0: there is none yet.
pid_t find_thread(const char* name) {
  pid_t found = 0;
  DIR* const threads = opendir("/proc/self/task");
  while (const dirent* const entry = threads ? readdir(threads) : nullptr) {
    std::array<char, 300> text{};
    std::snprintf(text.data(), text.size(), "/proc/self/task/%s/comm", entry->d_name);
    std::FILE* const file = std::fopen(text.data(), "r");
    if (file == nullptr) continue;
    if (std::fgets(text.data(), text.size(), file) && std::strncmp(text.data(), name, std::strlen(name)) == 0)
      found = std::atoi(entry->d_name);
    std::fclose(file);
  }
  if (threads) closedir(threads);
  return found;
}

void* interrupt_thread(void* name) {
  for (pid_t thread = 0;;) {
    usleep(thread == 0 ? 10'000 : 1'000);
    if (thread == 0)
      thread = find_thread(static_cast<const char*>(name));
    else
      syscall(SYS_tgkill, getpid(), thread, SIGURG);
  }
}

void start_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGURG;
  // Clocks of processor time advance with the kernel's ticks alone, of which there may be 100 in a second.
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  timer_settime(timer, 0, &period, nullptr);
  has_timer = true;
}

[[gnu::constructor]] void start() {
  const char* const frames = std::getenv("SAMPLER_FRAMES");
  expected_frames = frames ? static_cast<unsigned>(std::atoi(frames)) : 0;
  expected_name = std::getenv("SAMPLER_NAME");
  may_end = std::getenv("SAMPLER_ENDS") != nullptr;
  is_early = std::getenv("SAMPLER_EARLY") != nullptr;
  if (const char* const number = std::getenv("SAMPLER_LEAST")) least = static_cast<unsigned>(std::atoi(number));
  if (const char* const number = std::getenv("SAMPLER_FEW")) few = static_cast<unsigned>(std::atoi(number));
  struct sigaction action {};
  action.sa_sigaction = sample;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;  // Erlang's stacks have no room for a handler
  // Engines use SIGPROF themselves, and qemu takes all signals that end a program.
  sigaction(SIGURG, &action, nullptr);
  char* const name = std::getenv("SAMPLER_THREAD");
  pthread_t thread;
  if (name == nullptr)
    start_timer();
  else
    pthread_create(&thread, nullptr, interrupt_thread, name);
}

void report() {
  const unsigned all = samples;
  const ListenStatus status = listen_status();
  dprintf(STDERR_FILENO,
          "samples %u, whole %u, ended %u, guessed %u, as deep %u, named %u; told %lu, procedures %lu, names %lu; "
          "%lx %s\n",
          all, whole.load(), ended.load(), guessed.load(), as_deep.load(), named.load(), status.told, status.procedures,
          status.names, latest_stop.load(), latest_why.load());
  if (all < least) return;
  // Samples that arrive while lazy code is compiled end at a stub that nobody describes. Code runs a moment before it
  // has a name, and longer if a thread has to look, which may have to wait for a processor.
  const auto are_most = [all](unsigned some) { return all - some <= few || 100 * some >= 99 * all; };
  if (!are_most(may_end ? whole + guessed + ended : whole.load())) return;
  // Other samples are from the time of throwing. Those that end at a stub have fewer frames.
  if (expected_frames != 0 && 100 * as_deep < 90 * (all - ended)) return;
  if (expected_name != nullptr && !are_most(named)) return;
  dprintf(STDERR_FILENO, "sampled %s%s\n", may_end ? "stacks that end where they say" : "whole stacks",
          expected_name != nullptr ? " with names" : "");
}

[[gnu::destructor]] void report_at_end() {
  if (has_timer) timer_delete(timer);
  if (!is_early) report();
  test::remove_written_for_perf(getpid());
}

}  // namespace

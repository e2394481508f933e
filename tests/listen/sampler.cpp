// Preloaded into an engine: a profiler's handler, which walks at 1 kHz of the process's time, and what it has seen.
// SAMPLER_FRAMES: how many frames the engine's program has in code made at run time while it works. SAMPLER_NAME: what
// such code is called, where names are all that the engine says.
#include <dlfcn.h>
#include <signal.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/walk.h"

namespace {

using namespace jitunwind;

std::atomic<unsigned> samples{0};  // with a frame in code made at run time
std::atomic<unsigned> whole{0};    // that reach the outermost function, without a guess
std::atomic<unsigned> as_deep{0};  // with as many frames in such code as the program has
std::atomic<unsigned> named{0};    // where the innermost frame in such code has the name
std::atomic<Addr> latest_stop{0};
std::atomic<const char*> latest_why{""};
unsigned expected_frames = 0;
const char* expected_name = nullptr;
timer_t timer;

bool is_of_a_module(Addr at) {
  dl_find_object object;
  return _dl_find_object(reinterpret_cast<void*>(at), &object) == 0;
}

void sample(int, siginfo_t*, void* ucontext) {
  unsigned in_jit = 0;
  std::array<char, 200> name{};
  bool guessed = false;
  Walk walk = walk_interrupted(ucontext);
  for (const Frame& frame : walk) {
    if (!is_of_a_module(frame.address().lookup()) && in_jit++ == 0) (void)frame.raw_name(name);
    guessed = guessed || frame.is_guess();
  }
  if (in_jit == 0) return;
  ++samples;
  if (walk.stop_reason() == StopReason::outermost && !guessed) {
    ++whole;
  } else {
    latest_stop = walk.stop_error().at;
    latest_why = walk.stop_error().what;
  }
  if (in_jit == expected_frames) ++as_deep;
  if (expected_name != nullptr && std::strstr(name.data(), expected_name) != nullptr) ++named;
}

[[gnu::constructor]] void start() {
  const char* const frames = std::getenv("SAMPLER_FRAMES");
  expected_frames = frames ? static_cast<unsigned>(std::atoi(frames)) : 0;
  expected_name = std::getenv("SAMPLER_NAME");
  struct sigaction action {};
  action.sa_sigaction = sample;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGRTMIN + 5, &action, nullptr);  // engines use SIGPROF themselves
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN + 5;
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0) return;
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  timer_settime(timer, 0, &period, nullptr);
}

[[gnu::destructor]] void report() {
  timer_delete(timer);
  const unsigned all = samples;
  const ListenStatus status = listen_status();
  std::fprintf(stderr, "samples %u, whole %u, as deep %u, named %u; told %lu, procedures %lu, names %lu; %lx %s\n", all,
               whole.load(), as_deep.load(), named.load(), status.told, status.procedures, status.names,
               latest_stop.load(), latest_why.load());
  if (expected_name != nullptr) {
    // A piece of code runs a moment before it has a name.
    if (all >= 50 && 100 * named >= 95 * all) std::fputs("sampled names\n", stderr);
    return;
  }
  // Few samples come while lazy code is compiled below a stub that nobody describes.
  const unsigned others = all - whole;
  if (all >= 50 && (others <= 12 || 100 * others <= all) && (expected_frames == 0 || 100 * as_deep >= 95 * all))
    std::fputs("sampled whole stacks\n", stderr);
}

}  // namespace

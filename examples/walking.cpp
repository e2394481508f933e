// Walks of the own stack: a loop over frames, and samples of a profiler from a signal handler.
#include <jitunwind/jitunwind.h>

#include <sys/time.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <string>

[[gnu::noinline]] static void print_stack() {
  jitunwind::Walk walk = jitunwind::walk_here();
  for (const jitunwind::Frame& frame : walk) {
    const std::string name = frame.name();
    std::printf("%2u %#14" PRIx64 "  %s+%#" PRIx64 "%s\n", frame.depth(), frame.pc(), name.empty() ? "?" : name.c_str(),
                frame.offset(), frame.is_guess() ? "  (a guess)" : "");
  }
  std::printf("%s\n", walk.why().c_str());  // "complete", or where and why it ended
}

// A profiler: the handler stores addresses alone, and names are found afterwards.
struct Sample {
  std::array<void*, 64> addresses;
  std::size_t count = 0;
};
static std::array<Sample, 100> samples;
static std::atomic<unsigned> taken{0};

static void on_tick(int, siginfo_t*, void* context) {
  const unsigned number = taken.load();
  if (number == samples.size()) return;
  Sample& sample = samples[number];
  sample.count = jitunwind::backtrace(context, jitunwind::Cursor::Top::interrupted, sample.addresses);
  taken.store(number + 1);
}

[[gnu::noinline]] static double burn(unsigned long rounds) {
  volatile double sum = 0;
  for (unsigned long i = 0; i < rounds; ++i) sum = sum + 1.0 / static_cast<double>(i + 1);
  return sum;
}

static std::string name_of(void* address, bool is_return_address) {
  using jitunwind::CodeAddress;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::array<char, 256> name;
  jitunwind::ProcedureName found;
  const auto code = is_return_address ? CodeAddress::returned_to(at) : CodeAddress::interrupted(at);
  return jitunwind::find_local_name(code, name, found) ? name.data() : "?";
}

static void print_samples() {
  unsigned in_burn = 0;
  for (unsigned i = 0; i < taken; ++i)
    for (std::size_t k = 0; k < samples[i].count; ++k)
      if (name_of(samples[i].addresses[k], k != 0).find("burn") != std::string::npos) ++in_burn;
  std::printf("%u samples, %u of them in burn()\n", taken.load(), in_burn);
}

int main() {
  print_stack();

  struct sigaction action = {};
  action.sa_sigaction = on_tick;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every_millisecond{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every_millisecond, nullptr);
  while (taken < 20) burn(1'000'000);
  setitimer(ITIMER_PROF, nullptr, nullptr);
  std::signal(SIGPROF, SIG_IGN);
  print_samples();
}

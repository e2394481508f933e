// The program that an engine runs. It throws through its own frames, then works below twelve of them for most of the
// time. The last argument is the processor time in seconds, one by default, or, behind an "x", the number of rounds.
// lli with JITLink passes no program name before the arguments. Kernels like to interrupt programs where these ask for
// their time; the questions are some 40 ms apart.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

namespace {

[[gnu::noinline]] int throw_below(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  const int below = throw_below(depth - 1);
  asm volatile("");
  return below + 1;
}

volatile long sum = 0;

[[gnu::noinline]] long spin(long rounds) {
  for (long i = 0; i < rounds; ++i) sum = sum + i * 3;
  return sum;
}

[[gnu::noinline]] long work_below(int depth, long rounds) {
  const long below = depth == 0 ? spin(rounds) : work_below(depth - 1, rounds);
  asm volatile("");  // behind both calls: neither may be a jump
  return below + 1;
}

}  // namespace

int main(int argc, char** argv) {
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    try {
      throw_below(20);
    } catch (const std::exception&) {
      ++caught;
    }
  }
  std::printf("caught %d\n", caught);
  std::fflush(stdout);  // before what is said at exit
  const char* const last = argc > 0 ? argv[argc - 1] : "";
  const bool counts = *last == 'x';
  const char* const argument = counts || (*last >= '1' && *last <= '9') ? last : "1";
  long times = counts ? std::atol(argument + 1) : 0;
  const std::clock_t end = std::clock() + (counts ? 0 : std::atol(argument) * CLOCKS_PER_SEC);
  while (counts ? times-- > 0 : std::clock() < end) work_below(10, 30'000'000);
  std::printf("worked\n");
  return 0;
}

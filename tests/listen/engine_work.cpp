// What an engine runs: throws through its own frames, then works below twelve of them for most of the time.
#include <cstdio>
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
  if (depth == 0) return spin(rounds);
  const long below = work_below(depth - 1, rounds);
  asm volatile("");
  return below + 1;
}

}  // namespace

int main() {
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
  for (const std::clock_t begin = std::clock(); std::clock() - begin < CLOCKS_PER_SEC;) work_below(10, 3'000'000);
  return 0;
}

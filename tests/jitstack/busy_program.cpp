// Works for a third of a second of processor time, below a stack of known depth.
#include <ctime>

extern "C" {
volatile unsigned long worked = 0;

[[gnu::noinline]] void burn_deeper(int depth) {
  if (depth > 0) {
    burn_deeper(depth - 1);
    asm volatile("");  // no tail call
    return;
  }
  constexpr std::clock_t k_third_of_a_second = CLOCKS_PER_SEC / 3;
  while (std::clock() < k_third_of_a_second)
    for (int i = 0; i < 1'000'000; ++i) worked = worked + 1;
}
}

int main() { burn_deeper(20); }

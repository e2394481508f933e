// Works for a third of a second, at the end of a stack of known depth.
#include <chrono>

extern "C" {
volatile unsigned long worked = 0;

[[gnu::noinline]] void burn_deeper(int depth) {
  if (depth > 0) {
    burn_deeper(depth - 1);
    asm volatile("");  // no tail call
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(330);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 10'000; ++i) worked = worked + 1;
}
}

int main() { burn_deeper(20); }

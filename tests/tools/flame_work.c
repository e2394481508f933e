/* The work that the flame graphs of docs/profilers.md show: a program that an engine compiles at run time. None of its
   functions has a frame pointer, unless the compiler needs one. */
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { k_words = 4096 };
static uint32_t words[k_words];

#define FUNCTION static __attribute__((noinline))

FUNCTION uint32_t next_number(uint32_t* state) { return *state = *state * 1664525 + 1013904223; }

FUNCTION void read_words(uint32_t seed) {
  for (int i = 0; i < k_words; ++i) words[i] = next_number(&seed);
}

FUNCTION uint32_t hash_words(void) {
  uint32_t hash = 2166136261u;
  for (int k = 0; k < 20; ++k)
    for (int i = 0; i < k_words; ++i) hash = (hash ^ words[i]) * 16777619;
  return hash;
}

FUNCTION int partition(int low, int high) {
  const uint32_t pivot = words[(low + high) / 2];
  for (;;) {
    while (words[low] < pivot) ++low;
    while (words[high] > pivot) --high;
    if (low >= high) return high;
    const uint32_t word = words[low];
    words[low++] = words[high], words[high--] = word;
  }
}

FUNCTION void sort_words(int low, int high) {
  if (low >= high) return;
  const int middle = partition(low, high);
  sort_words(low, middle);
  sort_words(middle + 1, high);
}

FUNCTION uint32_t parse(uint32_t seed) {
  read_words(seed);
  return hash_words() + seed;
}

FUNCTION uint32_t render(uint32_t seed) {
  sort_words(0, k_words - 1);
  return words[seed % k_words];
}

int main(int argc, char** argv) {
  const clock_t end = clock() + (argc > 1 && strcmp(argv[argc - 1], "long") == 0 ? 20 : 1) * CLOCKS_PER_SEC;
  uint32_t sum = 0;
  while (clock() < end) sum += render(parse(sum));
  return sum == 0;
}

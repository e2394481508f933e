// A program without code made at run time. Its main() calls a function that stops, and has code that is seldom run,
// which gcc moves to a part of its own, main.cold, if it may.
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
[[gnu::noinline]] void stop_here() { asm volatile(""); }

[[gnu::noinline]] int calls_stop(int count) {
  stop_here();
  return count + 1;
}
}

int main(int argc, char** argv) {
  std::string all;
  for (int i = 0; i < argc; ++i) all += argv[i];
  const int count = calls_stop(argc);
  if (count < 0) std::abort();
  std::puts(all.c_str());
}

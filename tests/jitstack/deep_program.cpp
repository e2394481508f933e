// Stands still in a recursion of as many calls as its argument says.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

[[gnu::noinline]] int stand_still() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

[[gnu::noinline]] int descend(int calls) {
  const int from_below = calls == 0 ? stand_still() : descend(calls - 1);
  asm volatile("");
  return from_below + 1;
}

}  // namespace

int main(int argc, char** argv) { return argc > 1 ? descend(std::atoi(argv[1])) : 1; }

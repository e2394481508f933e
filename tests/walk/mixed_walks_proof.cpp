// A hundred thousand random stacks of every kind of frame, each walked in every way.
//   mixed_walks [STACKS]
#include <cstdio>
#include <cstdlib>

#include "tests/walk/mixed_walks.h"

int main(int argc, char** argv) {
  const std::size_t stacks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  const auto figures = jitunwind::test::walk_mixed_stacks((stacks + 1) / 2);
  std::puts(figures.text().c_str());
  return figures.ok() ? 0 : 1;
}

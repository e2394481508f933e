// A million walks from a profiling signal beside a thread that replaces procedures in place.
//   churn [WALKS]
#include <cstdio>
#include <cstdlib>

#include "tests/walk/churn.h"

int main(int argc, char** argv) {
  const auto figures = jitunwind::test::churn(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1'000'000);
  std::puts(figures.text().c_str());
  return figures.wrong == 0 && figures.short_ones == 0 ? 0 : 1;
}

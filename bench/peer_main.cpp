// The program of one peer: one group of its measurements, as Google Benchmark prints them.
//   PROGRAM walk|cold|cold_throw|registration|throw MAX-FUNCTIONS [--benchmark_...]
//   PROGRAM count [NAME TIMES]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/measurements.h"

int main(int argc, char** argv) {
  if (argc >= 2 && std::string(argv[1]) == "count")
    return bench::count(argc == 4 ? argv[2] : "", argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0);
  benchmark::Initialize(&argc, argv);
  const std::string group = argc == 3 ? argv[1] : "";
  if (group == "walk") {
    bench::add_walk_benchmarks();
    bench::add_contention_benchmarks();
    bench::add_through_walk_benchmarks(std::strtoul(argv[2], nullptr, 10));
  } else if (group == "cold") {
    bench::add_cold_benchmarks();
    bench::add_scattered_benchmarks();
    bench::add_library_benchmarks();
  } else if (group == "cold_throw") {
    bench::add_first_throw_benchmarks();
  } else if (group == "registration") {
    bench::add_registration_benchmarks(std::strtoul(argv[2], nullptr, 10));
  } else if (group == "throw") {
    bench::add_throw_benchmarks(std::strtoul(argv[2], nullptr, 10));
    bench::add_through_throw_benchmarks(std::strtoul(argv[2], nullptr, 10));
  } else {
    std::fprintf(stderr, "usage: %s walk|cold|cold_throw|registration|throw MAX-FUNCTIONS [--benchmark_...]\n",
                 argv[0]);
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

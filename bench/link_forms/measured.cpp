// One measurement in a process that has the library in one of the forms in which it can be linked:
//   WHAT COUNT   of COUNT procedures: the time to register one, the time to cancel one in the order of registration or
//   in
//                any order, the time of the first throw after the last registration, or the memory of one in bytes
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/jit_arena.h"
#include "bench/peer.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

namespace bench {
namespace {

double resident_bytes() {
  long total = 0, resident = 0;
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  const bool read = statm != nullptr && std::fscanf(statm, "%ld %ld", &total, &resident) == 2;
  if (statm != nullptr) std::fclose(statm);
  if (!read) std::exit(3);
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

void throw_one(Context*) { throw 1; }

void throw_through(const JitArena& arena, std::size_t index) {
  Context context{};
  try {
    run_stack({arena.entry(index), throw_one}, context);
  } catch (int) {
    return;
  }
  std::exit(4);
}

template <class Action>
double seconds(Action action) {
  const double begin = thread_seconds();
  action();
  return thread_seconds() - begin;
}

/// Returns seconds or bytes for one procedure, or the seconds of the throw.
double measure(const std::string& what, std::size_t count) {
  const JitArena arena(count + 1);  // the last one is for what is bound or found once
  Registrar& registrar = *registrars().front();
  registrar.prepare(arena.functions());
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (what == "cancel_random") std::shuffle(order.begin(), order.end(), std::mt19937_64(count));
  registrar.register_function(count);
  throw_through(arena, count);

  const auto register_all = [&] {
    for (std::size_t i = 0; i < count; ++i) registrar.register_function(i);
  };
  const auto cancel_all = [&] {
    for (const std::size_t i : order) registrar.cancel_function(i);
  };
  const double bytes = resident_bytes();
  if (what == "register" || what.starts_with("cancel")) register_all(), cancel_all();  // touches memory first
  const double registering = seconds(register_all);
  if (what == "register") return registering / static_cast<double>(count);
  if (what == "bytes") return (resident_bytes() - bytes) / static_cast<double>(count);
  if (what == "first_throw") return seconds([&] { throw_through(arena, count / 2); });
  return seconds(cancel_all) / static_cast<double>(count);
}

}  // namespace
}  // namespace bench

extern "C" int run_through(int argc, char** argv) {
  if (argc != 3) return 2;
  std::printf("%.12g\n", bench::measure(argv[1], std::strtoul(argv[2], nullptr, 10)));
  std::fflush(stdout);
  std::_Exit(0);  // the registrations end with the process
}

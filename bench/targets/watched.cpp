// A process that others look at: its stacks of C++ functions do not change.
//   watched DEPTH THREADS LIBRARIES REGISTERED [JIT_EVERY]
// DEPTH is the number of frames on each thread's stack; main is one of the THREADS. LIBRARIES are loaded and REGISTERED
// procedures are registered. Each JIT_EVERY-th frame belongs to one of these procedures. The process writes a byte when
// all threads have reached their stack's end. It then reads bytes, and for each of them it cancels a procedure that is
// on no stack, registers it again, and writes a byte.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/jit_arena.h"
#include "bench/libraries/many_libraries.h"
#include "bench/peer.h"
#include "bench/stack.h"

namespace bench {
namespace {

std::atomic<std::size_t> standing{0};
std::size_t threads = 1;
Registrar* registrar = nullptr;
std::size_t changed = 0;  // index of the procedure that is cancelled and registered

[[noreturn]] void stand_still(Context*) {
  if (standing.fetch_add(1) + 1 == threads) (void)!::write(STDOUT_FILENO, "r", 1);
  for (char told; ::read(STDIN_FILENO, &told, 1) == 1;) {
    registrar->cancel_function(changed);
    registrar->register_function(changed);
    (void)!::write(STDOUT_FILENO, "c", 1);
  }
  for (;;) ::pause();
}

std::vector<StackFunction> functions(std::size_t depth, std::size_t jit_every, const JitArena& arena) {
  std::vector<StackFunction> all;
  for (std::size_t i = 0; i < depth; ++i) {
    const bool is_jit = jit_every != 0 && i % jit_every == jit_every - 1;
    all.push_back(is_jit ? arena.entry(i / jit_every) : static_function(i));
  }
  all.push_back(stand_still);
  return all;
}

int stand(const std::vector<std::size_t>& numbers) {
  const std::size_t depth = numbers[0], registered = numbers[3], jit_every = numbers[4];
  threads = numbers[1];
  const std::vector<LoadedLibrary> libraries = load_libraries(numbers[2]);
  const JitArena arena(registered + 1);
  registrar = registrars().front();
  registrar->prepare(arena.functions());
  for (std::size_t i = 0; i < registered; ++i) registrar->register_function(i);
  changed = registered - 1;
  const auto stack = functions(depth, jit_every, arena);
  const auto run = [&] {
    Context context{};
    run_stack(stack, context);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  return 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::vector<std::size_t> numbers;
  for (int i = 1; i < argc; ++i) numbers.push_back(std::strtoul(argv[i], nullptr, 10));
  if (numbers.size() < 4 || numbers.size() > 5 || numbers[0] > bench::k_max_depth || numbers[1] == 0) {
    std::fprintf(stderr, "usage: %s DEPTH THREADS LIBRARIES REGISTERED [JIT_EVERY]\n", argv[0]);
    return 2;
  }
  numbers.resize(5);
  return bench::stand(numbers);
}

// Stops in work that a handler on a small signal stack does on another stack: at higher addresses with an argument, at
// lower ones without.
#include <signal.h>
#include <sys/mman.h>

#include "jitunwind/unwind_core/memory/small_stack_internal.h"

extern "C" {
[[gnu::noinline]] void stopped_in_work() { asm volatile("int3"); }
[[gnu::noinline]] void handler_on_small_stack(int) {
  jitunwind::with_room([] { stopped_in_work(); });
  asm volatile("");
}
[[gnu::noinline]] void interrupted_by_signal() {
  (void)::raise(SIGUSR1);
  asm volatile("");
}
}

int main(int argc, char**) {
  constexpr std::size_t k_size = 8192;
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS | (argc > 1 ? MAP_32BIT : 0);
  const stack_t stack{::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, kind, -1, 0), 0, k_size};
  struct sigaction action {};
  action.sa_handler = &handler_on_small_stack;
  action.sa_flags = SA_ONSTACK;
  if (::sigaltstack(&stack, nullptr) != 0 || ::sigaction(SIGUSR1, &action, nullptr) != 0) return 1;
  interrupted_by_signal();
  return 0;
}

// Stacks that a signal interrupts, with code that each kind of source knows, and code that none knows.
#pragma once

#include <span>

namespace jitunwind::test {

struct Scene {
  const char* name;
  const char* function;  ///< that is to be found on the stack
  void (*run)();
  bool is_guessed = false;        ///< which throws must not be
  bool is_beyond_libgcc = false;  ///< which does not know how to go on there
};

/// Each scene ends in SIGUSR1, SIGSEGV or SIGBUS.
std::span<const Scene> small_stack_scenes();

}  // namespace jitunwind::test

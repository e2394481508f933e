// Stops in a function that registered code has called, for a debugger. Run it with JITUNWIND_ATTACH=gdb.
#include <sys/mman.h>

#include <cstring>

#include "frame_code.h"
#include "jitunwind/builders/registration.h"

#ifndef BREAKPOINT
#define BREAKPOINT "brk #0"
#endif

extern "C" [[gnu::noinline]] void* stop_here(void* argument) {
  asm volatile(BREAKPOINT);
  return argument;
}

int main() {
  using jitunwind::test::FrameCode;
  constexpr std::size_t k_size = sizeof FrameCode::k_bytes;
  constexpr int k_access = PROT_READ | PROT_WRITE | PROT_EXEC;
  void* const code = ::mmap(nullptr, k_size, k_access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, FrameCode::k_bytes, k_size);
  __builtin___clear_cache(static_cast<char*>(code), static_cast<char*>(code) + k_size);
  const auto description = FrameCode::described("made_at_run_time").build();
  const auto registered = jitunwind::register_code(*description, code, k_size);
  if (!registered) return 1;
  reinterpret_cast<void* (*)(void* (*)(void*), void*)>(code)(&stop_here, nullptr);
}

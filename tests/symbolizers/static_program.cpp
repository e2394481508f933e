// A static program: prints what the functions that name addresses say of code at 0x1000, of registered code, and of its
// own.
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/jit_frame.h"

int main() {
  const auto description = jitunwind::test::FrameCode::described("made_at_run_time").build();
  const auto nameless = jitunwind::test::FrameCode::described("").build();
  if (!description || !nameless) return 1;
  const auto made =
      jitunwind::register_code(*description, {.start = 0x2000, .size = sizeof jitunwind::test::FrameCode::k_bytes});
  const auto other =
      jitunwind::register_code(*nameless, {.start = 0x1000, .size = sizeof jitunwind::test::FrameCode::k_bytes});
  if (!made || !other) return 1;
  void* const addresses[] = {reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(0x2004),
                             reinterpret_cast<void*>(&main)};
  Dl_info info;
  if (dladdr(addresses[1], &info) == 0) return 1;
  char** const texts = backtrace_symbols(addresses, 3);
  if (texts == nullptr) return 1;
  std::printf("%s\n%s+0x%zx\n%s\n%s\n", texts[0], info.dli_sname,
              static_cast<std::size_t>(static_cast<char*>(addresses[1]) - static_cast<char*>(info.dli_saddr)), texts[1],
              texts[2]);
  std::free(texts);
  std::printf("written ");
  std::fflush(stdout);
  backtrace_symbols_fd(addresses + 2, 1, 1);
  return 0;
}

// Tests with the shared libraries: walks of addresses that continue in another library, and a throw through described
// code.
#include <libunwind.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

namespace {

std::vector<void*> found_by(int (*backtrace)(void**, int)) {
  std::array<void*, 64> all;
  const int count = backtrace(all.data(), all.size());
  return std::vector<void*>(all.begin(), all.begin() + count);  // braces would make a list of two
}

/// Returns whether both interfaces lead to the same caller of the described code, and have that code among their
/// addresses.
bool agree(jitunwind::Addr return_address) {
  const auto whole = found_by([](void** into, int size) { return jitunwind_backtrace(into, size, 0); });
  const auto callers = found_by([](void** into, int size) { return unw_backtrace(into, size); });
  for (std::size_t i = 0; i < whole.size() && i < callers.size(); ++i)
    if (reinterpret_cast<std::uintptr_t>(whole[whole.size() - 1 - i]) == return_address)
      return i > 0 && whole[whole.size() - 1 - i] == callers[callers.size() - 1 - i] && whole.back() == callers.back();
  return false;
}

}  // namespace

int main() {
  static bool agreed = false;
  static jitunwind::Addr return_address = 0;
  const jitunwind::test::JitFrame jit;
  return_address = jit.return_address();
  try {
    jit(
        [](void*) -> void* {
          agreed = agree(return_address);
          throw std::runtime_error("thrown");
        },
        nullptr);
  } catch (const std::runtime_error&) {
    std::puts(agreed ? "walked and caught" : "caught");
  }
}

// A program in C++ that has libjitunwind-core alone: an exception passes code that is registered, caught by main(). Its
// run-time library asks the core for the code's call frame information.
#include <jitunwind/sdk/c/register.h>

#include <cstdio>
#include <stdexcept>

#include "tests/core/made_code.h"

namespace {

void thrower() { throw std::runtime_error("passed"); }

int fail(const char* what) { return std::puts(what), 1; }

}  // namespace

int main() {
  static unsigned char frames[sizeof k_frames];
  unsigned char* const page = map_code(frames, 1);
  if (page == nullptr) return fail("no memory");
  ju_object* registered = nullptr;
  if (register_made(page, frames, &registered, nullptr) != JU_OK) return fail("not registered");
  try {
    reinterpret_cast<void (*)(void (*)())>(page)(thrower);
  } catch (const std::runtime_error& thrown) {
    return ju_object_cancel(registered, nullptr) == JU_OK ? (std::puts(thrown.what()), 0) : 1;
  }
  return fail("nothing was thrown");
}

// A program in C++ that has libjitunwind-core alone: an exception passes code that is registered, caught by main(). Its
// run-time library asks the core for the code's call frame information.
#include <jitunwind/sdk/c/register.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "tests/core/code.h"

namespace {

void thrower() { throw std::runtime_error("passed"); }

int fail(const char* what) { return std::puts(what), 1; }

}  // namespace

int main() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return fail("mmap");
  std::memcpy(page, k_code, sizeof k_code);
  if (::mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) return fail("mprotect");
  static unsigned char frames[sizeof k_frames];
  place_frames(frames, static_cast<const unsigned char*>(page));
  const auto begin = reinterpret_cast<std::uintptr_t>(page), table = reinterpret_cast<std::uintptr_t>(frames);
  const ju_range code{begin, begin + sizeof k_code};
  ju_object_code object{};
  object.struct_size = sizeof object;
  object.code = &code;
  object.code_count = 1;
  object.eh_frame = {table, table + sizeof frames};
  ju_object* registered = nullptr;
  if (ju_object_register(&object, &registered, nullptr) != JU_OK) return fail("not registered");
  try {
    reinterpret_cast<void (*)(void (*)())>(page)(thrower);
  } catch (const std::runtime_error& thrown) {
    return ju_object_cancel(registered, nullptr) == JU_OK ? (std::puts(thrown.what()), 0) : 1;
  }
  return fail("nothing was thrown");
}

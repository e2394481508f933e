// A definition of GDB's interface that is not this library's, as LLVM and hosts have it.
#include "tests/debuggers/descriptor.h"

#if defined(HIDDEN_DESCRIPTOR)
#define JITUNWIND_TEST_VISIBILITY "hidden"
#else
#define JITUNWIND_TEST_VISIBILITY "default"
#endif

extern "C" {
[[gnu::used, gnu::visibility(JITUNWIND_TEST_VISIBILITY)]] constinit jit_descriptor __jit_debug_descriptor{1, 0, nullptr,
                                                                                                          nullptr};
/// The function is also called before the library is relocated: it calls no function of a sanitizer, and one of the
/// program's only after the relocation.
[[gnu::used, gnu::noinline, gnu::no_sanitize_thread, gnu::no_sanitize_address,
  gnu::visibility(JITUNWIND_TEST_VISIBILITY)]] void
__jit_debug_register_code() {
  if (&other_descriptor_told != nullptr) other_descriptor_told();
}
[[gnu::used, gnu::visibility("default")]] jit_descriptor* other_descriptor() { return &__jit_debug_descriptor; }
}

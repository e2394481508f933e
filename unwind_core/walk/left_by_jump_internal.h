// A mark for functions that end in a jump out of them.
#pragma once

// ThreadSanitizer keeps a stack of its own, of functions that were entered and not left. A function that is left by a
// jump must not be on it. AddressSanitizer may have variables elsewhere than on the stack, which such functions need
// there.
#define JITUNWIND_LEFT_BY_A_JUMP __attribute__((no_sanitize_thread, no_sanitize_address))

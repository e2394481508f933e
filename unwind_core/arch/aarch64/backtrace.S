// int jitunwind_backtrace(void **addresses, int size, int callers_only): passes the caller's frame pointer, its SP and
// the return address on, and leaves no frame of its own. It is built a second time as libunwind's unw_backtrace(),
// which begins with the caller.
#ifndef JITUNWIND_BACKTRACE
#define JITUNWIND_BACKTRACE jitunwind_backtrace
#define JITUNWIND_WHOLE
#else
#define JITUNWIND_WHOLE mov w2, #0
#endif
#if defined(__aarch64__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        function JITUNWIND_BACKTRACE
        JITUNWIND_WHOLE
        mov     x3, x29
        mov     x4, sp
        mov     x5, x30
        b       jitunwind_backtrace_from
        end_function JITUNWIND_BACKTRACE
#endif
        .section .note.GNU-stack, "", %progbits

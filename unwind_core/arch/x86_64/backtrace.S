// int jitunwind_backtrace(void **addresses, int size, int callers_only): passes the caller's frame pointer, its SP
// after the call and the return address on, and leaves no frame of its own. It is built a second time as libunwind's
// unw_backtrace(), which begins with the caller.
#ifndef JITUNWIND_BACKTRACE
#define JITUNWIND_BACKTRACE jitunwind_backtrace
#define JITUNWIND_WHOLE
#else
#define JITUNWIND_WHOLE xorl %edx, %edx
#endif
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .section .text.hot, "ax", %progbits
        .globl  JITUNWIND_BACKTRACE
        .type   JITUNWIND_BACKTRACE, @function
        .p2align 4
JITUNWIND_BACKTRACE:
        .cfi_startproc
        endbr64
        JITUNWIND_WHOLE
        movq    %rbp, %rcx
        leaq    8(%rsp), %r8
        movq    (%rsp), %r9
        jmp     jitunwind_backtrace_from@PLT
        .cfi_endproc
        .size   JITUNWIND_BACKTRACE, . - JITUNWIND_BACKTRACE
#endif
        .section .note.GNU-stack, "", %progbits

// int jitunwind_capture_context(ucontext_t *): stores the caller's registers, as they are when this function has
// returned. Offsets: ucontext of the table in x86_64.cpp; uc_mcontext.fpregs 224, __fpregs_mem 424, in it cwd 0 and
// mxcsr 24 (sys/ucontext.h). Writes only registers that the psABI lets a function preserve, and scratch registers as
// they stand. It is built a second time under its name in libunwind's interface.
#ifndef JITUNWIND_CAPTURE
#define JITUNWIND_CAPTURE jitunwind_capture_context
#endif
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .section .text.hot, "ax", %progbits
        .globl  JITUNWIND_CAPTURE
        .type   JITUNWIND_CAPTURE, @function
        .p2align 4
JITUNWIND_CAPTURE:
        .cfi_startproc
        endbr64
        movq    %r8, 40(%rdi)
        movq    %r9, 48(%rdi)
        movq    %r10, 56(%rdi)
        movq    %r11, 64(%rdi)
        movq    %r12, 72(%rdi)
        movq    %r13, 80(%rdi)
        movq    %r14, 88(%rdi)
        movq    %r15, 96(%rdi)
        movq    %rdi, 104(%rdi)
        movq    %rsi, 112(%rdi)
        movq    %rbp, 120(%rdi)
        movq    %rbx, 128(%rdi)
        movq    %rdx, 136(%rdi)
        movq    $0, 144(%rdi)           // rax: the 0 that is returned
        movq    %rcx, 152(%rdi)
        leaq    8(%rsp), %rax           // rsp of the caller after the call
        movq    %rax, 160(%rdi)
        movq    (%rsp), %rax
        movq    %rax, 168(%rdi)
        leaq    424(%rdi), %rax
        movq    %rax, 224(%rdi)
        fnstcw  424(%rdi)
        stmxcsr 448(%rdi)
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   JITUNWIND_CAPTURE, . - JITUNWIND_CAPTURE
#endif
        .section .note.GNU-stack, "", %progbits

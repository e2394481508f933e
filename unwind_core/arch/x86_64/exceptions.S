// The functions of the exception ABI that need their caller's registers (Itanium C++ ABI, level I; AMD64 ABI, 6.2).
// Each stores the values that its caller will have when it returns, as a ucontext_t down to rip, and calls its C++
// half:
//   struct { void *go_on_at; long code; } half(first, second, third, const void *registers)
// If go_on_at is 0, code is returned to the caller. Otherwise another runtime's function of this name takes the call
// over, as if this one had never been called. Offsets are those of context.S.
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .section .text.hot, "ax", %progbits

        .macro  entry name, half
        .globl  \name
        .type   \name, @function
        .globl  __libunwind\name
        .set    __libunwind\name, \name
        .hidden \half
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        subq    $184, %rsp
        .cfi_adjust_cfa_offset 184
        movq    %r12, 72(%rsp)
        movq    %r13, 80(%rsp)
        movq    %r14, 88(%rsp)
        movq    %r15, 96(%rsp)
        movq    %rdi, 104(%rsp)
        movq    %rsi, 112(%rsp)
        movq    %rbp, 120(%rsp)
        movq    %rbx, 128(%rsp)
        movq    %rdx, 136(%rsp)
        leaq    192(%rsp), %rax
        movq    %rax, 160(%rsp)
        movq    184(%rsp), %rax
        movq    %rax, 168(%rsp)
        movq    %rsp, %rcx
        call    \half
        testq   %rax, %rax
        jnz     1f
        movl    %edx, %eax
        addq    $184, %rsp
        .cfi_remember_state
        .cfi_adjust_cfa_offset -184
        ret
1:      .cfi_restore_state
        movq    104(%rsp), %rdi
        movq    112(%rsp), %rsi
        movq    136(%rsp), %rdx
        addq    $184, %rsp
        .cfi_adjust_cfa_offset -184
        notrack jmp *%rax
        .cfi_endproc
        .size   \name, . - \name
        .endm

        entry   _Unwind_RaiseException, jitunwind_eh_raise
        entry   _Unwind_Resume, jitunwind_eh_resume
        entry   _Unwind_Resume_or_Rethrow, jitunwind_eh_rethrow
        entry   _Unwind_ForcedUnwind, jitunwind_eh_force
        entry   _Unwind_Backtrace, jitunwind_eh_backtrace
#endif
        .section .note.GNU-stack, "", %progbits

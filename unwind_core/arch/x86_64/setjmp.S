// setjmp() and its relatives: see sdk/compat/drop_in/setjmp.cpp. A jmp_buf holds the return address of the call, SP
// after it, the frame pointer, and the data of save_mask(). Preserved registers are found again by walking.
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .text

        .macro  set_jump name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        movq    (%rsp), %rax
        movq    %rax, (%rdi)
        leaq    8(%rsp), %rax
        movq    %rax, 8(%rdi)
        movq    %rbp, 16(%rdi)
        .endm

        .macro  end_function name
        jmp     jitunwind_save_mask
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .globl  _setjmp
        .set    _setjmp, setjmp
        set_jump setjmp
        xorl    %esi, %esi
        end_function setjmp

        set_jump sigsetjmp
        end_function sigsetjmp
#endif

        .section .note.GNU-stack, "", @progbits

// setjmp() and its relatives: see sdk/compat/drop_in/setjmp.cpp. A jmp_buf holds where the call returns to, SP behind it,
// and what save_mask() adds. Preserved registers are found again by walking.
#if defined(__x86_64__) && defined(__LP64__)
        .text

        .macro  set_jump name, alias
        .globl  \name
        .type   \name, @function
        .globl  \alias
        .set    \alias, \name
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        movq    (%rsp), %rax
        movq    %rax, (%rdi)
        leaq    8(%rsp), %rax
        movq    %rax, 8(%rdi)
        .endm

        .macro  end_function name
        jmp     jitunwind_save_mask
        .cfi_endproc
        .size   \name, . - \name
        .endm

        set_jump setjmp, _setjmp
        xorl    %esi, %esi
        end_function setjmp

        set_jump sigsetjmp, __sigsetjmp
        end_function sigsetjmp
#endif

        .section .note.GNU-stack, "", @progbits

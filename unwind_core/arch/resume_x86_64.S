// Into a frame, with all of its registers at once: see unwind_core/resume.h. Offsets as in context_x86_64.S; efl 176.
// The instructions of shadow stacks (Intel SDM, volume 2) are written as bytes, for assemblers that lack them.
#if defined(__x86_64__) && defined(__LP64__)
        .text

// rsi entries off the shadow stack, 255 at most by one incsspq: next_shadow_stack_pop() in resume.h. Clobbers rax.
        .macro  pop_shadow_stack
        testq   %rsi, %rsi
        jz      2f
1:      movl    $255, %eax
        cmpq    %rax, %rsi
        cmovb   %rsi, %rax
        .byte   0xf3, 0x48, 0x0f, 0xae, 0xe8    // incsspq %rax
        subq    %rax, %rsi
        jnz     1b
2:
        .endm

// Everything is loaded before rsp moves: what lies below it then belongs to signal handlers.
        .globl  jitunwind_restore_context
        .type   jitunwind_restore_context, @function
        .p2align 4
jitunwind_restore_context:
        .cfi_startproc
        endbr64
        pop_shadow_stack
        movq    168(%rdi), %rcx
        movq    160(%rdi), %r11
        movq    40(%rdi), %r8
        movq    48(%rdi), %r9
        movq    56(%rdi), %r10
        movq    72(%rdi), %r12
        movq    80(%rdi), %r13
        movq    88(%rdi), %r14
        movq    96(%rdi), %r15
        movq    112(%rdi), %rsi
        movq    120(%rdi), %rbp
        movq    128(%rdi), %rbx
        movq    136(%rdi), %rdx
        movq    144(%rdi), %rax
        movq    104(%rdi), %rdi
        movq    %r11, %rsp
        notrack jmp *%rcx
        .cfi_endproc
        .size   jitunwind_restore_context, . - jitunwind_restore_context

// rt_sigreturn finds the ucontext_t at rsp, as a handler's return leaves it (arch/x86/kernel/signal_64.c).
        .globl  jitunwind_return_from_signal
        .type   jitunwind_return_from_signal, @function
        .p2align 4
jitunwind_return_from_signal:
        .cfi_startproc
        endbr64
        pop_shadow_stack
        testl   %edx, %edx
        jz      3f
        andq    $~0x400, 176(%rdi)      // the direction flag: clear at every call (AMD64 ABI, 3.2.1)
3:      movq    %rdi, %rsp
        movl    $15, %eax
        syscall
        hlt
        .cfi_endproc
        .size   jitunwind_return_from_signal, . - jitunwind_return_from_signal

        .globl  jitunwind_shadow_stack_pointer
        .type   jitunwind_shadow_stack_pointer, @function
        .p2align 4
jitunwind_shadow_stack_pointer:
        .cfi_startproc
        endbr64
        xorl    %eax, %eax
        .byte   0xf3, 0x48, 0x0f, 0x1e, 0xc8    // rdsspq %rax: leaves rax alone without one
        ret
        .cfi_endproc
        .size   jitunwind_shadow_stack_pointer, . - jitunwind_shadow_stack_pointer
#endif
        .section .note.GNU-stack, "", %progbits

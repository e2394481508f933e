// Resumption in a frame, with all of its registers at once (unwind_core/walk/resume.h), and calls on another stack.
// Offsets are those of context.S; efl 176. The instructions of shadow stacks (Intel SDM, volume 2) are written as bytes,
// for assemblers that lack them.
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .text

// Pops rsi entries off the shadow stack, 255 at most by one incsspq: next_shadow_stack_pop() in resume.h. Clobbers rax.
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

// The caller of these functions never continues: call frame information declares the target frame as their caller, from
// their first instruction on, and its pc as an interrupted one, not a return address. Its registers are saved at the
// offsets from rdi, DW_OP_breg5. They are given in bytes, since there is no directive: DW_CFA_expression 0x10,
// DW_CFA_def_cfa_expression 0x0f with DW_OP_deref (DWARF 5, 6.4.2).
        .macro  saved_at offset, column
        .cfi_escape 0x10, \column, 3, 0x75, (\offset & 0x7f) | 0x80, \offset >> 7
        .endm
        .macro  caller_is_in_context
        .cfi_signal_frame
        .cfi_escape 0x0f, 4, 0x75, (160 & 0x7f) | 0x80, 160 >> 7, 0x06
        saved_at 40, 8
        saved_at 48, 9
        saved_at 56, 10
        saved_at 64, 11
        saved_at 72, 12
        saved_at 80, 13
        saved_at 88, 14
        saved_at 96, 15
        saved_at 104, 5
        saved_at 112, 4
        saved_at 120, 6
        saved_at 128, 3
        saved_at 136, 1
        saved_at 144, 0
        saved_at 152, 2
        saved_at 168, 16
        .endm

// Everything is loaded before rsp moves, since memory below it then belongs to signal handlers.
        .globl  jitunwind_restore_context
        .type   jitunwind_restore_context, @function
        .p2align 4
jitunwind_restore_context:
        .cfi_startproc
        caller_is_in_context
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
        // rcx and r11 are lost; all others are the caller's.
        .cfi_def_cfa 11, 0
        .cfi_register 16, 2
        .irp    column, 0, 1, 3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15
        .cfi_same_value \column
        .endr
        .cfi_undefined 2
        .cfi_undefined 11
        movq    %r11, %rsp
        .cfi_def_cfa 7, 0
        notrack jmp *%rcx
        .cfi_endproc
        .size   jitunwind_restore_context, . - jitunwind_restore_context

// rt_sigreturn finds the ucontext_t at rsp, as a handler's return leaves it (arch/x86/kernel/signal_64.c).
        .globl  jitunwind_return_from_signal
        .type   jitunwind_return_from_signal, @function
        .p2align 4
jitunwind_return_from_signal:
        .cfi_startproc
        caller_is_in_context
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
        .byte   0xf3, 0x48, 0x0f, 0x1e, 0xc8    // rdsspq %rax: leaves rax unchanged if there is none
        ret
        .cfi_endproc
        .size   jitunwind_shadow_stack_pointer, . - jitunwind_shadow_stack_pointer

// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. Calls and returns stay nested, as shadow stacks require. The
// frame's caller is on the first stack, which may be at lower addresses. GDB accepts such a caller only of a function
// named __morestack (frame.c, get_prev_frame_always_1), if the function has called another one: the call is therefore
// in a symbol of that name.
        .section .text.hot, "ax", %progbits
        .globl  jitunwind_call_on_stack
        .hidden jitunwind_call_on_stack
        .type   jitunwind_call_on_stack, @function
        .type   __morestack, @function
        .p2align 4
jitunwind_call_on_stack:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        movq    %rdx, %rsp
__morestack:
        call    *%rax
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   __morestack, . - __morestack
        .size   jitunwind_call_on_stack, . - jitunwind_call_on_stack
#endif
        .section .note.GNU-stack, "", %progbits

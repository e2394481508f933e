// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. Calls and returns stay nested, as shadow stacks require. The
// frame's caller is on the first stack, which may be at lower addresses. GDB accepts such a caller only of a function
// named __morestack (frame.c, get_prev_frame_always_1), if the function has called another one: the call is therefore
// in a symbol of that name.
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
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

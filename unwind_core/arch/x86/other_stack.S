// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. The frame's caller is on the first stack, which may be at lower
// addresses. GDB accepts such a caller only of a function named __morestack (frame.c, get_prev_frame_always_1), if the
// function has called another one: the call is therefore in a symbol of that name.
#if defined(__i386__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        .hidden jitunwind_call_on_stack
        .type   __morestack, @function
        function jitunwind_call_on_stack
        pushl   %ebp
        .cfi_def_cfa_offset 8
        .cfi_offset %ebp, -8
        movl    %esp, %ebp
        .cfi_def_cfa_register %ebp
        movl    8(%ebp), %eax
        movl    12(%ebp), %ecx
        movl    16(%ebp), %edx
        leal    -16(%edx), %esp
        movl    %ecx, (%esp)
__morestack:
        call    *%eax
        movl    %ebp, %esp
        popl    %ebp
        .cfi_def_cfa %esp, 4
        .cfi_restore %ebp
        ret
        .size   __morestack, . - __morestack
        end_function jitunwind_call_on_stack
#endif
        .section .note.GNU-stack, "", %progbits

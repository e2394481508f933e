// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. The frame's caller is on the first stack, which may be at lower
// addresses. GDB accepts such a caller only of a function named __morestack (frame.c, get_prev_frame_always_1), if the
// function has called another one: the call is therefore in a symbol of that name.
#if defined(__aarch64__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        .hidden jitunwind_call_on_stack
        .type   __morestack, %function
        function jitunwind_call_on_stack
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        mov     x16, x0
        mov     x0, x1
        mov     sp, x2
__morestack:
        blr     x16
        mov     sp, x29
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa sp, 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .size   __morestack, . - __morestack
        end_function jitunwind_call_on_stack
#endif
        .section .note.GNU-stack, "", %progbits

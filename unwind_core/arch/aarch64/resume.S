// Resumption in a frame, with all of its registers at once (unwind_core/walk/resume.h), and calls on another stack. There
// is no shadow stack.
#if defined(__aarch64__)
#include "functions.inc"
        .text

// The caller of these functions never continues: call frame information declares the target frame as their caller, from
// their first instruction on, and its pc as an interrupted one, not a return address. Its registers are saved at the
// offsets from x0, DW_OP_breg0. They are given in bytes, since there is no directive: DW_CFA_expression 0x10,
// DW_CFA_def_cfa_expression 0x0f with DW_OP_deref (DWARF 5, 6.4.2). The return column is 32, the pc: x30 is an ordinary
// register of the frame.
        .macro  saved_at offset, column
        .cfi_escape 0x10, \column, 3, 0x70, ((\offset) & 0x7f) | 0x80, (\offset) >> 7
        .endm
        .macro  caller_is_in_context
        .cfi_signal_frame
        .cfi_return_column 32
        .cfi_escape 0x0f, 4, 0x70, (.Lin_sp & 0x7f) | 0x80, .Lin_sp >> 7, 0x06
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
        saved_at .Lin_x0 + 8 * \n, \n
        .endr
        saved_at .Lin_pc, 32
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        saved_at .Lin_v0 + 16 * \n, 64 + \n
        .endr
        .endm

// Everything is loaded before sp moves, since memory below it then belongs to signal handlers. The jump is a return,
// which may lead to any instruction if landing pads are required.
        function jitunwind_restore_context, caller_is_in_context
        ldp     x17, x16, [x0, #.Lin_sp]
        preserved ldr, ldp, x0
        ldp     x2, x3, [x0, #.Lin_x0 + 2 * 8]
        ldp     x4, x5, [x0, #.Lin_x0 + 4 * 8]
        ldp     x6, x7, [x0, #.Lin_x0 + 6 * 8]
        ldp     x8, x9, [x0, #.Lin_x0 + 8 * 8]
        ldp     x10, x11, [x0, #.Lin_x0 + 10 * 8]
        ldp     x12, x13, [x0, #.Lin_x0 + 12 * 8]
        ldp     x14, x15, [x0, #.Lin_x0 + 14 * 8]
        ldr     x18, [x0, #.Lin_x0 + 18 * 8]
        ldp     x29, x30, [x0, #.Lin_x0 + 29 * 8]
        ldp     x0, x1, [x0, #.Lin_x0]
        // x16 and x17 are lost; all others are the caller's.
        .cfi_def_cfa 17, 0
        .cfi_register 32, 16
        .irp    column, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,18,19,20,21,22,23,24,25,26,27,28,29,30
        .cfi_same_value \column
        .endr
        .irp    column, 72, 73, 74, 75, 76, 77, 78, 79
        .cfi_same_value \column
        .endr
        .cfi_undefined 16
        .cfi_undefined 17
        mov     sp, x17
        .cfi_def_cfa 31, 0
        ret     x16
        end_function jitunwind_restore_context

// rt_sigreturn finds struct rt_sigframe at sp: a siginfo_t of 128 bytes, and the ucontext_t
// (arch/arm64/kernel/signal.c).
        function jitunwind_return_from_signal, caller_is_in_context
        cbz     w2, 1f
        // PSTATE.BTYPE: the code was interrupted in the middle of an indirect branch (Arm ARM, C5.2.4); no other place
        // has such a state.
        ldr     x9, [x0, #.Lin_pstate]
        and     x9, x9, #~0xc00
        str     x9, [x0, #.Lin_pstate]
1:      sub     sp, x0, #128
        mov     x8, #139
        svc     #0
        brk     #0
        end_function jitunwind_return_from_signal

        function jitunwind_shadow_stack_pointer
        mov     x0, #0
        ret
        end_function jitunwind_shadow_stack_pointer

// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. The frame's caller is on the first stack, which may be at lower
// addresses. GDB accepts such a caller only of a function named __morestack (frame.c, get_prev_frame_always_1), if the
// function has called another one: the call is therefore in a symbol of that name.
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

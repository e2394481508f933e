// Resumption in a frame, with all of its registers at once (unwind_core/walk/resume.h), and calls on another stack.
// Offsets: functions.inc; efl 84.
#if defined(__i386__)
#include "functions.inc"
        .text

// The caller of these functions never continues: call frame information declares the target frame as their caller, from
// their first instruction on, and its pc as an interrupted one, not a return address. Its registers are saved at their
// offsets from the result of a few operations. They are given in bytes, since there is no directive: DW_CFA_expression
// 0x10, DW_CFA_def_cfa_expression 0x0f with DW_OP_deref (DWARF 5, 6.4.2). The operations: DW_OP_breg4 4, DW_OP_deref,
// DW_OP_plus_uconst, for the argument; DW_OP_breg0, for the value of eax.
        .macro  saved_at_argument offset, column
        .cfi_escape 0x10, \column, 5, 0x74, 4, 0x06, 0x23, \offset
        .endm
        .macro  saved_at_eax offset, column
        .cfi_escape 0x10, \column, 3, 0x70, (\offset & 0x7f) | 0x80, \offset >> 7
        .endm
        .macro  saved how
        \how    .Lin_eax, 0
        \how    .Lin_ecx, 1
        \how    .Lin_edx, 2
        \how    .Lin_ebx, 3
        \how    .Lin_esp, 4
        \how    .Lin_ebp, 5
        \how    .Lin_esi, 6
        \how    .Lin_edi, 7
        \how    .Lin_eip, 8
        .endm
        .macro  load_argument
        .cfi_signal_frame
        .cfi_escape 0x0f, 6, 0x74, 4, 0x06, 0x23, .Lin_esp, 0x06
        saved saved_at_argument
        movl    4(%esp), %eax
        .cfi_escape 0x0f, 4, 0x70, (.Lin_esp & 0x7f) | 0x80, .Lin_esp >> 7, 0x06
        saved saved_at_eax
        .endm

// Everything is loaded before esp moves, since memory below it then belongs to signal handlers. The pc goes to the
// place of a return address, on the new stack below its SP, which is free there; ecx is lost.
        function jitunwind_restore_context
        load_argument
        pushl   .Lin_eip(%eax)
        movl    .Lin_esp(%eax), %ecx
        movl    .Lin_edi(%eax), %edi
        movl    .Lin_esi(%eax), %esi
        movl    .Lin_ebp(%eax), %ebp
        movl    .Lin_ebx(%eax), %ebx
        movl    .Lin_edx(%eax), %edx
        movl    .Lin_eax(%eax), %eax
        .cfi_def_cfa %ecx, 0
        .irp    column, 0, 2, 3, 5, 6, 7
        .cfi_same_value \column
        .endr
        .cfi_undefined 1
        .cfi_escape 0x16, 4, 2, 0x71, 0         // esp: DW_CFA_val_expression, DW_OP_breg1 0
        .cfi_escape 0x10, 8, 2, 0x74, 0         // eip: at DW_OP_breg4 0
        popl    -4(%ecx)
        .cfi_offset 8, -4
        leal    -4(%ecx), %esp
        .cfi_def_cfa %esp, 4
        ret
        end_function jitunwind_restore_context

// rt_sigreturn finds the ucontext_t 140 bytes above esp, as a handler's return leaves it. Before it are its number, two
// pointers and a siginfo_t of 128 bytes (struct rt_sigframe_ia32, arch/x86/include/asm/sigframe.h).
        function jitunwind_return_from_signal
        load_argument
        cmpl    $0, 16(%esp)
        je      1f
        andl    $~0x400, 84(%eax)       // the direction flag: clear at every call (psABI for i386, 2.2.1)
1:      leal    -140(%eax), %esp
        movl    $173, %eax
        .cfi_escape 0x0f, 5, 0x74, ((.Lin_esp + 140) & 0x7f) | 0x80, (.Lin_esp + 140) >> 7, 0x06
        int     $0x80
        hlt
        end_function jitunwind_return_from_signal

        function jitunwind_shadow_stack_pointer
        xorl    %eax, %eax
        xorl    %edx, %edx
        ret
        end_function jitunwind_shadow_stack_pointer

// void jitunwind_call_on_stack(void (*work)(void *), void *argument, void *stack): calls work(argument) on another
// stack. `stack` is its upper end, a multiple of 16. The frame's caller is on the first stack, which may be at lower
// addresses. GDB accepts such a caller only of a function named __morestack (frame.c, get_prev_frame_always_1), if the
// function has called another one: the call is therefore in a symbol of that name.
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

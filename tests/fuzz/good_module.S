/* Four functions that would call each other, each with another kind of frame. */
    .macro function name
    .p2align 5, 0x90
    .globl \name
    .type \name, @function
\name:
.L\name:
    .cfi_startproc
    .endm
    .macro end_function name
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    function outermost
    .cfi_undefined %rip
    call .Lby_stack_pointer
    hlt
    end_function outermost

    function by_stack_pointer
    .cfi_personality 0x1b, .Linnermost
    .cfi_lsda 0x1b, lsda
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbx, -16
    sub $16, %rsp
    .cfi_adjust_cfa_offset 16
    call .Lby_frame_pointer
    add $16, %rsp
    .cfi_adjust_cfa_offset -16
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
    end_function by_stack_pointer

    function by_frame_pointer
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    call .Linnermost
    .cfi_remember_state
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_restore_state
    ud2
    end_function by_frame_pointer

    function innermost
    .cfi_escape 0x0f, 2, 0x77, 8 /* DW_CFA_def_cfa_expression: DW_OP_breg7 (rsp) 8 */
    nopl 0(%rax, %rax, 1)
    nopl 0(%rax, %rax, 1)
    ret
    end_function innermost

    .section .rodata
lsda:
    .byte 0xff, 0xff, 1, 0

    .section .note.GNU-stack, "", @progbits

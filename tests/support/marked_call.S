// void jitunwind_marked_call(void (*target)(void)): calls target with a different value in every register that some
// calling convention preserves, so that no register can be taken for another. The stack has room for arguments and for
// the spill area of the Windows convention. The stack and the preserved registers are right again afterwards, whatever
// target does to SP by removing arguments. Not reentrant.
        .set mark_rbx, 0x1b001b001b001b
        .set mark_rbp, 0x1b901b901b901b
        .set mark_rsi, 0x5151515151515151
        .set mark_rdi, 0xd1d1d1d1d1d1d1d
        .set mark_rcx, 0x1c001c001c001c
        .set mark_rdx, 0x1d001d001d001d
        .set mark_r8, 0x808080808080808
        .set mark_r9, 0x909090909090909
        .set mark_r10, 0xa0a0a0a0a0a0a0a
        .set mark_r11, 0xb0b0b0b0b0b0b0b
        .set mark_r12, 0xc0c0c0c0c0c0c0c
        .set mark_r13, 0xd0d0d0d0d0d0d0d
        .set mark_r14, 0xe0e0e0e0e0e0e0e
        .set mark_r15, 0xf0f0f0f0f0f0f0f

        .text
        .globl jitunwind_marked_call
        .type jitunwind_marked_call, @function
jitunwind_marked_call:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        push %rbp
        .cfi_adjust_cfa_offset 8
        push %r12
        .cfi_adjust_cfa_offset 8
        push %r13
        .cfi_adjust_cfa_offset 8
        push %r14
        .cfi_adjust_cfa_offset 8
        push %r15
        .cfi_adjust_cfa_offset 8
        mov %rsp, saved_sp(%rip)
        sub $200, %rsp
        .cfi_adjust_cfa_offset 200
        mov %rdi, %rax
        .irp reg, rbx, rbp, rsi, rdi, rcx, rdx, r8, r9, r10, r11, r12, r13, r14, r15
        movabs $mark_\reg, %\reg
        .endr
        .irp n, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups xmm_mark+\n*16(%rip), %xmm\n
        .endr
        call *%rax
        mov saved_sp(%rip), %rsp
        .cfi_adjust_cfa_offset -200
        pop %r15
        .cfi_adjust_cfa_offset -8
        pop %r14
        .cfi_adjust_cfa_offset -8
        pop %r13
        .cfi_adjust_cfa_offset -8
        pop %r12
        .cfi_adjust_cfa_offset -8
        pop %rbp
        .cfi_adjust_cfa_offset -8
        pop %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size jitunwind_marked_call, . - jitunwind_marked_call

        .section .rodata
        .p2align 4
xmm_mark:
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        .quad 0x4000000000000000 + \n, 0x4100000000000000 + \n
        .endr

        .local saved_sp
        .comm saved_sp, 8, 8
        .section .note.GNU-stack, "", @progbits

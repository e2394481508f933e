// Magic numbers in all preserved registers, for assembly code: struct Arrival of magic_frame.h.
#pragma once

// In front of the frame's body. The third argument, struct Arrival *, is then at 0(%rsp), which is 64 below the CFA.
        .macro  magic_save
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        pushq   %rbx
        .cfi_def_cfa_offset 24
        .cfi_offset rbx, -24
        pushq   %r12
        .cfi_def_cfa_offset 32
        .cfi_offset r12, -32
        pushq   %r13
        .cfi_def_cfa_offset 40
        .cfi_offset r13, -40
        pushq   %r14
        .cfi_def_cfa_offset 48
        .cfi_offset r14, -48
        pushq   %r15
        .cfi_def_cfa_offset 56
        .cfi_offset r15, -56
        pushq   %rdx
        .cfi_def_cfa_offset 64
        .endm

        .macro  magic_load
        movabsq $0x4d00000000000003, %rbx
        movabsq $0x4d00000000000006, %rbp
        movabsq $0x4d0000000000000c, %r12
        movabsq $0x4d0000000000000d, %r13
        movabsq $0x4d0000000000000e, %r14
        movabsq $0x4d0000000000000f, %r15
        .endm

// What the registers hold, and in rcx whether control came to the landing pad.
        .macro  magic_write_down
        movq    (%rsp), %rdi
        movq    %rbx, 0(%rdi)
        movq    %rbp, 8(%rdi)
        movq    %r12, 16(%rdi)
        movq    %r13, 24(%rdi)
        movq    %r14, 32(%rdi)
        movq    %r15, 40(%rdi)
        movq    %rax, 48(%rdi)
        movq    %rdx, 56(%rdi)
        movq    %rcx, 64(%rdi)
        .endm

        .macro  magic_restore
        popq    %rdx
        .cfi_def_cfa_offset 56
        popq    %r15
        .cfi_def_cfa_offset 48
        popq    %r14
        .cfi_def_cfa_offset 40
        popq    %r13
        .cfi_def_cfa_offset 32
        popq    %r12
        .cfi_def_cfa_offset 24
        popq    %rbx
        .cfi_def_cfa_offset 16
        popq    %rbp
        .cfi_def_cfa_offset 8
        .endm

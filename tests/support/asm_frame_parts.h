// What frames written in assembly have in common.
#pragma once

// In front of the body of f(void *(*callee)(void *), void *argument): a frame record; callee in rax, argument in rdi.
        .macro  begin_frame_with_rbp
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        .endm

// The pointer that `.cfi_personality 0x9b, DW.ref.name` refers to, as compilers make it.
        .macro  personality_reference name
        .hidden DW.ref.\name
        .weak   DW.ref.\name
        .section .data.rel.local.DW.ref.\name, "awG", @progbits, DW.ref.\name, comdat
        .p2align 3
        .type   DW.ref.\name, @object
        .size   DW.ref.\name, 8
DW.ref.\name:
        .quad   \name
        .text
        .endm

// Frames with a personality routine that only logs. void *logged_frame_X(void *(*f)(void *), void *argument): calls
// f(argument) and returns its result. The landing pad calls landed(exception, id, SP): 0 returns 1 to the caller, else
// unwinding goes on.
#include "tests/support/asm_frame_parts.inc"
        .text

        .macro  logged_frame letter, code, frame_size
        .globl  logged_frame_\letter
        .type   logged_frame_\letter, @function
        .p2align 4
logged_frame_\letter:
        .cfi_startproc
        .cfi_personality 0x9b, DW.ref.logging_personality
        .cfi_lsda 0x1b, .Llsda_\letter
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        subq    $\frame_size, %rsp
        .cfi_def_cfa_offset 16 + \frame_size
        movq    %rdi, %rax
        movq    %rsi, %rdi
        movl    $\code, %ebx
        call    *%rax
1:      addq    $\frame_size, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
.Llanding_\letter:
        .cfi_def_cfa_offset 16 + \frame_size
        endbr64
        movq    %rax, (%rsp)
        movq    %rax, %rdi
        movq    %rdx, %rsi
        leaq    (%rsp), %rdx
        movq    %rbx, %rcx
        call    landed
        testl   %eax, %eax
        movl    $1, %eax
        jz      1b
        movq    (%rsp), %rdi
        call    _Unwind_Resume@PLT
        hlt
        .cfi_endproc
        .size   logged_frame_\letter, . - logged_frame_\letter
        .section .rodata
        .p2align 3
.Llsda_\letter:
        .quad   \code
        .quad   .Llanding_\letter - .Llsda_\letter
        .text
        .endm

        logged_frame A, 65, 16
        logged_frame B, 66, 32
        logged_frame C, 67, 144
        logged_frame D, 68, 16

// This frame is like the others but has no personality routine.
        .globl  plain_frame
        .type   plain_frame, @function
        .p2align 4
plain_frame:
        .cfi_startproc
        begin_frame_with_rbp
        call    *%rax
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   plain_frame, . - plain_frame

// This frame has as many remembered states in front of its call as instructions, far more than compilers need.
        .globl  remembering_frame
        .type   remembering_frame, @function
remembering_frame:
        .cfi_startproc
        begin_frame_with_rbp
        .rept   1000
        nop
        .cfi_remember_state
        .endr
        call    *%rax
        .rept   1000
        nop
        .cfi_restore_state
        .endr
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   remembering_frame, . - remembering_frame

        personality_reference logging_personality
        .section .note.GNU-stack, "", %progbits

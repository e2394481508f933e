// Frames to resume in. Both know what their registers must be behind the call, whichever way control came there.
#include "tests/resume/magic_registers.inc"
#include "tests/support/asm_frame_parts.inc"
        .text

// void magic_frame(void (*f)(void *), void *argument, struct Arrival *out): calls f(argument) with a magic number in each
// preserved register and writes down what they, rax and rdx hold behind the call.
        .globl  magic_frame, magic_frame_behind_call, magic_frame_landing
        .type   magic_frame, @function
magic_frame:
        .cfi_startproc
        magic_save
        movq    %rdi, %rax
        movq    %rsi, %rdi
        magic_load
        call    *%rax
magic_frame_behind_call:
        xorl    %ecx, %ecx
1:      magic_write_down
        magic_restore
        ret
magic_frame_landing:
        .cfi_def_cfa_offset 64
        movl    $1, %ecx
        jmp     1b
        .cfi_endproc
        .size   magic_frame, . - magic_frame

// long pushing_frame(void (*f)(void *), void *argument): pushes two words of arguments for the call, as 32-bit code does.
// Returns how far SP is from where it was before, behind the call and at its landing pad; plus 1000 from the latter.
        .globl  pushing_frame, pushing_frame_behind_call, pushing_frame_landing
        .type   pushing_frame, @function
pushing_frame:
        .cfi_startproc
        begin_frame_with_rbp
        pushq   $1
        pushq   $2
        .cfi_escape 0x2e, 16
        call    *%rax
pushing_frame_behind_call:
        addq    $16, %rsp
        .cfi_escape 0x2e, 0
        movq    %rbp, %rax
        subq    %rsp, %rax
        leave
        .cfi_def_cfa rsp, 8
        ret
pushing_frame_landing:
        .cfi_def_cfa rbp, 16
        leaq    1000(%rbp), %rax
        subq    %rsp, %rax
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   pushing_frame, . - pushing_frame

// void trap_with_registers(struct Interrupted *): see signal_test.cpp. The pointer is in rbx meanwhile.
        .globl  trap_with_registers, trap_instruction
        .type   trap_with_registers, @function
trap_with_registers:
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        movq    %rdi, %rbx
        movq    56(%rbx), %xmm7
        pushq   48(%rbx)
        .cfi_def_cfa_offset 24
        movq    0(%rbx), %rax
        movq    8(%rbx), %rcx
        movq    16(%rbx), %rdx
        movq    24(%rbx), %rdi
        movq    32(%rbx), %r8
        movq    40(%rbx), %r11
        popfq
        .cfi_def_cfa_offset 16
trap_instruction:
        ud2
        pushfq
        .cfi_def_cfa_offset 24
        cld
        popq    48(%rbx)
        .cfi_def_cfa_offset 16
        movq    %rax, 0(%rbx)
        movq    %rcx, 8(%rbx)
        movq    %rdx, 16(%rbx)
        movq    %rdi, 24(%rbx)
        movq    %r8, 32(%rbx)
        movq    %r11, 40(%rbx)
        movq    %xmm7, 56(%rbx)
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   trap_with_registers, . - trap_with_registers
        .section .note.GNU-stack, "", %progbits

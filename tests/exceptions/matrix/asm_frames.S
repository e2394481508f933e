// Frames whose registers are known when an exception or a longjmp() comes: asm_frames.h.
#include "tests/resume/magic_registers.inc"
#include "tests/support/asm_frame_parts.inc"
        .text

        .globl  catching_frame
        .type   catching_frame, @function
catching_frame:
        .cfi_startproc
        .cfi_personality 0x9b, DW.ref.__gxx_personality_v0
        .cfi_lsda 0x1b, catching_frame_lsda
        magic_save
        movq    %rdi, %rax
        movq    %rsi, %rdi
        magic_load
catching_frame_call:
        call    *%rax
catching_frame_behind_call:
        xorl    %ecx, %ecx
        magic_write_down
1:      magic_restore
        ret
catching_frame_landing:
        .cfi_def_cfa_offset 64
        movl    $1, %ecx
        magic_write_down
        movq    %rax, %rdi
        call    __cxa_begin_catch@PLT
        movq    %rax, %rdi
        call    catching_frame_caught@PLT
        call    __cxa_end_catch@PLT
        jmp     1b
        .cfi_endproc
        .size   catching_frame, . - catching_frame

// Itanium C++ ABI, "Exception Handling Tables": the call above lands for any exception.
        .section .gcc_except_table, "a", @progbits
        .p2align 2
catching_frame_lsda:
        .byte   0xff                            // landing pads count from the function's start
        .byte   0x03                            // types: udata4
        .uleb128 types_end - types_distance
types_distance:
        .byte   0x01                            // call sites: uleb128
        .uleb128 sites_end - sites_begin
sites_begin:
        .uleb128 catching_frame_call - catching_frame
        .uleb128 catching_frame_behind_call - catching_frame_call
        .uleb128 catching_frame_landing - catching_frame
        .uleb128 1                              // the first action
sites_end:
        .byte   1, 0                            // type 1, no further action
        .p2align 2
        .long   0                               // type 1: everything
types_end:

        personality_reference __gxx_personality_v0

        .globl  jumping_frame
        .type   jumping_frame, @function
jumping_frame:
        .cfi_startproc
        magic_save
        subq    $16, %rsp
        .cfi_def_cfa_offset 80
        movq    %rdi, 0(%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rcx, %rdi
        magic_load
        call    _setjmp@PLT
        movl    $1, %ecx
        testl   %eax, %eax
        jnz     1f
        movq    8(%rsp), %rdi
        call    *0(%rsp)
        xorl    %ecx, %ecx
1:      addq    $16, %rsp
        .cfi_def_cfa_offset 64
        magic_write_down
        magic_restore
        ret
        .cfi_endproc
        .size   jumping_frame, . - jumping_frame

        .globl  stand_still
        .type   stand_still, @function
stand_still:
        .cfi_startproc
        movb    $1, (%rdi)
1:      pause
        jmp     1b
        .cfi_endproc
        .size   stand_still, . - stand_still
        .section .note.GNU-stack, "", %progbits

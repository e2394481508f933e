# int framed_with_broken_cfi(int (*call)(void)): keeps a frame record, but its .eh_frame restores a state that was never
# remembered. (Of an opcode that does not exist the linker would take notice.)
        .text
        .globl  framed_with_broken_cfi
        .type   framed_with_broken_cfi, @function
framed_with_broken_cfi:
        .cfi_startproc
        .cfi_escape 0x0b  # DW_CFA_restore_state
        push    %rbp
        mov     %rsp, %rbp
        call    *%rdi
        pop     %rbp
        ret
        .cfi_endproc
        .size   framed_with_broken_cfi, . - framed_with_broken_cfi
        .section .note.GNU-stack, "", @progbits

# long scratch_base(long value): as AES-GCM of libcrypto it keeps its CFA in rax, which calls need not preserve, and calls
# procedures of its own that leave rax alone.
        .text
        .globl  scratch_base
        .type   scratch_base, @function
scratch_base:
        .cfi_startproc
        lea     (%rsp), %rax
        .cfi_def_cfa_register rax
        push    %rbx
        .cfi_offset rbx, -16
        push    %r12
        .cfi_offset r12, -24
        sub     $200, %rsp
        and     $-128, %rsp
        mov     %rdi, %rbx
        mov     %rdi, %r12
        call    leaves_rax
        mov     -8(%rax), %rbx
        .cfi_restore rbx
        mov     -16(%rax), %r12
        .cfi_restore r12
        lea     (%rax), %rsp
        .cfi_def_cfa_register rsp
        mov     %rdx, %rax
        ret
        .cfi_endproc
        .size   scratch_base, . - scratch_base

        .type   leaves_rax, @function
leaves_rax:
        .cfi_startproc
        push    %r12
        .cfi_def_cfa_offset 16
        .cfi_offset r12, -16
        xor     %r12d, %r12d
        call    leaves_rax_too
        pop     %r12
        .cfi_def_cfa_offset 8
        .cfi_restore r12
        ret
        .cfi_endproc
        .size   leaves_rax, . - leaves_rax

# Its CFA is in rcx, which it leaves alone, too.
        .type   leaves_rax_too, @function
leaves_rax_too:
        .cfi_startproc
        mov     %rsp, %rcx
        .cfi_def_cfa_register rcx
        sub     $24, %rsp
        lea     1(%rbx,%r12), %rdx
        mov     %rcx, %rsp
        .cfi_def_cfa_register rsp
        ret
        .cfi_endproc
        .size   leaves_rax_too, . - leaves_rax_too
        .section .note.GNU-stack, "", @progbits

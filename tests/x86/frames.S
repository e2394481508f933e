// Frames of x86 with 32 bits to walk from, to resume in and to throw through. frames.h says what each does.
        .text

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .endm
        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm
        .macro  save reg
        pushl   \reg
        .cfi_adjust_cfa_offset 4
        .cfi_rel_offset \reg, 0
        .endm
        .macro  reload reg
        popl    \reg
        .cfi_adjust_cfa_offset -4
        .cfi_restore \reg
        .endm

        .globl  x86_magic_behind_call, x86_magic_landing
        begin   x86_magic
        save    %ebp
        save    %ebx
        save    %esi
        save    %edi
        subl    $12, %esp
        .cfi_adjust_cfa_offset 12
        movl    32(%esp), %eax
        movl    36(%esp), %ecx
        movl    %ecx, (%esp)
        movl    $0x4d000003, %ebx
        movl    $0x4d000005, %ebp
        movl    $0x4d000006, %esi
        movl    $0x4d000007, %edi
        call    *%eax
x86_magic_behind_call:
        movl    40(%esp), %ecx
        movl    $0, 24(%ecx)
1:      movl    %ebx, (%ecx)
        movl    %ebp, 4(%ecx)
        movl    %esi, 8(%ecx)
        movl    %edi, 12(%ecx)
        movl    %eax, 16(%ecx)
        movl    %edx, 20(%ecx)
        addl    $12, %esp
        .cfi_adjust_cfa_offset -12
        .cfi_remember_state
        reload  %edi
        reload  %esi
        reload  %ebx
        reload  %ebp
        ret
        .cfi_restore_state
x86_magic_landing:
        .cfi_adjust_cfa_offset 12
        movl    40(%esp), %ecx
        movl    $1, 24(%ecx)
        jmp     1b
        end     x86_magic

        .globl  x86_leaf_trap
        begin   x86_leaf
        movl    4(%esp), %eax
x86_leaf_trap:
        ud2
        incl    %eax
        ret
        end     x86_leaf

        begin   x86_entry
        ud2
        ret
        end     x86_entry

        .globl  x86_all_trap
        begin   x86_all
        save    %ebp
        save    %ebx
        save    %esi
        save    %edi
        movl    20(%esp), %eax
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  32 + 16 * \n(%eax), %xmm\n
        .endr
        fldl    160(%eax)
        movl    4(%eax), %ecx
        movl    8(%eax), %edx
        movl    12(%eax), %ebx
        movl    20(%eax), %ebp
        movl    24(%eax), %esi
        movl    28(%eax), %edi
        movl    (%eax), %eax
x86_all_trap:
        ud2
        pushl   %eax
        .cfi_adjust_cfa_offset 4
        movl    24(%esp), %eax
        popl    (%eax)
        .cfi_adjust_cfa_offset -4
        movl    %ecx, 4(%eax)
        movl    %edx, 8(%eax)
        movl    %ebx, 12(%eax)
        movl    %ebp, 20(%eax)
        movl    %esi, 24(%eax)
        movl    %edi, 28(%eax)
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  %xmm\n, 32 + 16 * \n(%eax)
        .endr
        fstpl   160(%eax)
        reload  %edi
        reload  %esi
        reload  %ebx
        reload  %ebp
        ret
        end     x86_all

// No call frame information, for whom their bytes are all there is.
        .globl  x86_restore_rt, x86_restore, x86_restore_otherwise
        .type   x86_restore_rt, @function
        .type   x86_restore, @function
        nop
x86_restore_rt:
        movl    $173, %eax
        int     $0x80
        .size   x86_restore_rt, . - x86_restore_rt
        nop
x86_restore:
        popl    %eax
        movl    $119, %eax
        int     $0x80
        .size   x86_restore, . - x86_restore
        .type   x86_restore_otherwise, @function
x86_restore_otherwise:
        xorl    %eax, %eax
        movb    $173, %al
        int     $0x80
        ud2
        .size   x86_restore_otherwise, . - x86_restore_otherwise
        .section .note.GNU-stack, "", %progbits

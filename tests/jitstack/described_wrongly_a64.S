// Functions of AArch64 as words, so that every assembler makes them: a test writes that CPU's number into the file.
// Register 29 is the frame pointer, 30 the link register, 31 SP.
        .text

        .macro function name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc simple
        .cfi_return_column 30
        .cfi_def_cfa 31, 0
        .endm
        .macro end name
        .cfi_endproc
        .size   \name, . - \name
        .endm
        .macro wrong name
        .globl  at_\name
at_\name:
        .endm

        function right
        .long   0xa9be7bfd      // stp x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        .long   0x910003fd      // mov x29, sp
        .long   0xf9000bf3      // str x19, [sp, #16]
        .cfi_offset 19, -16
        .long   0xaa0003f3      // mov x19, x0
        .long   0x97fffffc      // bl right
        .long   0xf9400bf3      // ldr x19, [sp, #16]
        .long   0xa8c27bfd      // ldp x29, x30, [sp], #32
        .cfi_restore 19
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        .long   0xd65f03c0      // ret
        end right

        function cfa_off_by_16
        .long   0xa9be7bfd      // stp x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        wrong   cfa_off_by_16
        .long   0x97fffff6      // bl
        .long   0xa8c27bfd      // ldp x29, x30, [sp], #32
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        .long   0xd65f03c0      // ret
        end cfa_off_by_16

        function link_not_saved
        .long   0xa9bf7bfd      // stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .long   0x97fffff2      // bl
        wrong   link_not_saved
        .long   0xa8c17bfd      // ldp x29, x30, [sp], #16
        .cfi_restore 29
        .cfi_def_cfa_offset 0
        .long   0xd65f03c0      // ret
        end link_not_saved

        function wrong_slot
        .long   0xa9be7bfd      // stp x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        .long   0xa90153f3      // stp x19, x20, [sp, #16]
        .cfi_offset 19, -8
        .cfi_offset 20, -16
        wrong   wrong_slot
        .long   0xaa0003f3      // mov x19, x0
        .long   0xaa0103f4      // mov x20, x1
        .long   0x97ffffeb      // bl
        .long   0xa94153f3      // ldp x19, x20, [sp, #16]
        .long   0xa8c27bfd      // ldp x29, x30, [sp], #32
        .cfi_restore 19
        .cfi_restore 20
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        .long   0xd65f03c0      // ret
        end wrong_slot

        function no_epilogue
        .long   0xa9bf7bfd      // stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .cfi_offset 30, -8
        .long   0x97ffffe6      // bl
        .long   0xa8c17bfd      // ldp x29, x30, [sp], #16
        wrong   no_epilogue
        .long   0xd65f03c0      // ret
        end no_epilogue

        function signed_unsaid
        .long   0xd503233f      // paciasp
        wrong   signed_unsaid
        .long   0xa9bf7bfd      // stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .cfi_offset 30, -8
        .long   0x97ffffe1      // bl
        .long   0xa8c17bfd      // ldp x29, x30, [sp], #16
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        .long   0xd50323bf      // autiasp
        .long   0xd65f03c0      // ret
        end signed_unsaid

        .section .note.GNU-stack,"",@progbits

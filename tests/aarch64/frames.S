// Frames of AArch64 to walk from, to resume in and to throw through. frames.h says what each does.
        .arch   armv8-a
        .text

        .macro  begin name
        .globl  \name
        .type   \name, %function
        .p2align 2
\name:
        .cfi_startproc
        .endm
        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

// v8-v15 as their low halves.
        .macro  vectors move, base, offset
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        \move   d\n, [\base, #\offset + 8 * (\n - 8)]
        .endr
        .endm
        .macro  generals move, base, offset
        .irp    n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
        \move   x\n, [\base, #\offset + 8 * (\n - 19)]
        .endr
        .endm

        .set    .Lframe, 192
        .globl  a64_magic_behind_call, a64_magic_landing
        begin   a64_magic
        sub     sp, sp, #.Lframe
        .cfi_def_cfa_offset .Lframe
        generals str, sp, 0
        .irp    n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
        .cfi_offset x\n, 8 * (\n - 19) - .Lframe
        .endr
        str     x30, [sp, #88]
        .cfi_offset x30, 88 - .Lframe
        vectors str, sp, 96
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        .cfi_offset 64 + \n, 96 + 8 * (\n - 8) - .Lframe
        .endr
        str     x2, [sp, #160]
        mov     x9, x0
        mov     x0, x1
        mov     x10, #0x4d00
        lsl     x10, x10, #48
        .irp    n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
        add     x\n, x10, #\n
        .endr
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        add     x11, x10, #\n
        fmov    d\n, x11
        .endr
        blr     x9
a64_magic_behind_call:
        mov     x3, #0
1:      ldr     x2, [sp, #160]
        generals str, x2, 0
        vectors str, x2, 88
        stp     x0, x1, [x2, #152]
        str     x3, [x2, #168]
        generals ldr, sp, 0
        ldr     x30, [sp, #88]
        vectors ldr, sp, 96
        add     sp, sp, #.Lframe
        .cfi_remember_state
        .cfi_def_cfa_offset 0
        .irp    n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 72, 73, 74, 75, 76, 77, 78, 79
        .cfi_restore \n
        .endr
        ret
a64_magic_landing:
        .cfi_restore_state
        mov     x3, #1
        b       1b
        end     a64_magic

// Both traps are in front of anything that these functions do with the return address.
        .globl  a64_leaf_trap
        begin   a64_leaf
        mov     x9, x0
        add     x9, x9, #1
a64_leaf_trap:
        udf     #0
        mov     x0, x9
        ret
        end     a64_leaf

        begin   a64_entry
        udf     #0
        ret
        end     a64_entry

// Both keys: A and B (CIE augmentation "B").
        .macro  signed name, sign, authenticate, key
        .globl  \name\()_behind_call
        begin   \name
        \key
        hint    #\sign
        .cfi_negate_ra_state
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        mov     x9, x0
        mov     x0, x1
        blr     x9
\name\()_behind_call:
        mov     x1, x30                 // the call's
        ldr     x0, [sp, #8]
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        hint    #\authenticate
        .cfi_negate_ra_state
        eor     x0, x0, x30             // the signature
        ret
        end     \name
        .endm
        signed  a64_signed, 25, 29              // paciasp, autiasp
        signed  a64_signed_b, 27, 31, .cfi_b_key_frame  // pacibsp, autibsp

// CFA = SP + 16 + 16 * vg, as compilers describe frames with two registers of scalable vectors.
        .globl  a64_scalable_behind_call
        begin   a64_scalable
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        lsl     x29, x2, #4             // no frame pointer
        sub     sp, sp, x29
        .cfi_escape 0x0f, 10, 0x8f, 0, 0x92, 46, 0, 0x40, 0x1e, 0x23, 16, 0x22
        mov     x9, x0
        mov     x0, x1
        blr     x9
a64_scalable_behind_call:
        add     sp, sp, x29
        .cfi_def_cfa sp, 16
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        end     a64_scalable

// x0-x30 are at 8 * n of what x0 points to, q0-q31 at 256 + 16 * n.
        .globl  a64_all_trap
        begin   a64_all
        sub     sp, sp, #.Lframe
        .cfi_def_cfa_offset .Lframe
        generals str, sp, 0
        .irp    n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
        .cfi_offset x\n, 8 * (\n - 19) - .Lframe
        .endr
        str     x30, [sp, #88]
        .cfi_offset x30, 88 - .Lframe
        vectors str, sp, 96
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        .cfi_offset 64 + \n, 96 + 8 * (\n - 8) - .Lframe
        .endr
        str     x0, [sp, #160]
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        ldr     q\n, [x0, #256 + 16 * \n]
        .endr
        .irp    n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
        ldr     x\n, [x0, #8 * \n]
        .endr
        ldr     x0, [x0]
a64_all_trap:
        udf     #0
        str     x0, [sp, #168]
        ldr     x0, [sp, #160]
        .irp    n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
        str     x\n, [x0, #8 * \n]
        .endr
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        str     q\n, [x0, #256 + 16 * \n]
        .endr
        ldr     x1, [sp, #168]
        str     x1, [x0]
        generals ldr, sp, 0
        ldr     x30, [sp, #88]
        vectors ldr, sp, 96
        add     sp, sp, #.Lframe
        .cfi_def_cfa_offset 0
        ret
        end     a64_all
        .section .note.GNU-stack, "", %progbits

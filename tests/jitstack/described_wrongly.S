// Functions of x86-64 whose call frame information is right, or wrong in one place: the name says what is wrong, the
// label at_NAME is where it begins. The program jitstack reads the file and does not run it.
        .text

        .macro function name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .endm
        .macro end name
        .cfi_endproc
        .size   \name, . - \name
        .endm
        // The first instruction at which the row is wrong.
        .macro wrong name
        .globl  at_\name
at_\name:
        .endm

        function right
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rbx
        .cfi_offset %rbx, -24
        subq    $24, %rsp
        testq   %rdi, %rdi
        je      1f
        movq    %rdi, %rbx
        call    right@plt
        addq    %rbx, %rax
1:      movq    -8(%rbp), %rbx
        leave
        .cfi_def_cfa %rsp, 8
        ret
        end right

        function cfa_off_by_8
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        subq    $32, %rsp
        .cfi_def_cfa_offset 40
        wrong   cfa_off_by_8
        movq    %rdi, %rbx
        call    right@plt
        addq    $32, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end cfa_off_by_8

        function missing_push
        pushq   %r12
        .cfi_def_cfa_offset 16
        movq    %rdi, %r12
        wrong   missing_push
        call    right@plt
        movq    %r12, %rax
        popq    %r12
        .cfi_def_cfa_offset 8
        ret
        end missing_push

        // No data are read, since there are none.
        function changed_by_data
        movslq  (%rdi), %rax
        addq    %rax, %rbx
        wrong   changed_by_data
        ret
        end changed_by_data

        function wrong_slot
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        pushq   %r12
        .cfi_def_cfa_offset 24
        .cfi_offset %r12, -16
        wrong   wrong_slot
        movq    %rdi, %rbx
        movq    %rsi, %r12
        call    right@plt
        popq    %r12
        .cfi_def_cfa_offset 16
        .cfi_restore %r12
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end wrong_slot

        function early_restore
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        movq    %rdi, %rbx
        call    right@plt
        movq    %rbx, %rax
        .cfi_restore %rbx
        wrong   early_restore
        addq    $1, %rax
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end early_restore

        function no_epilogue
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        movq    %rdi, %rbx
        call    right@plt
        popq    %rbx
        wrong   no_epilogue
        ret
        end no_epilogue

        function row_not_remembered
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        movq    %rdi, %rbx
        testq   %rdi, %rdi
        je      1f
        popq    %rbx
        .cfi_def_cfa_offset 8
        .cfi_restore %rbx
        ret
1:
        wrong   row_not_remembered
        call    right@plt
        popq    %rbx
        ret
        end row_not_remembered

        function frame_pointer_overwritten
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rdi, %rbp
        wrong   frame_pointer_overwritten
        call    right@plt
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        end frame_pointer_overwritten

        function return_address_elsewhere
        pushq   %rax
        .cfi_def_cfa_offset 16
        .cfi_offset %rip, -16
        wrong   return_address_elsewhere
        call    right@plt
        popq    %rax
        .cfi_def_cfa_offset 8
        .cfi_offset %rip, -8
        ret
        end return_address_elsewhere

        // Two parts of a procedure, of which the second one is entered with the frame of the first.
        function split
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        testq   %rdi, %rdi
        je      cold_part
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end split

        function cold_part
        .cfi_def_cfa_offset 24
        .cfi_offset %rbx, -16
        wrong   cold_part
        movq    %rdi, %rbx
        popq    %rbx
        .cfi_def_cfa_offset 8
        .cfi_same_value %rbx
        ret
        end cold_part

        // Nothing in the code tells what SP becomes.
        function undecided
        movq    (%rdi), %rsp
        call    right@plt
        ud2
        end undecided

        .section .note.GNU-stack,"",@progbits

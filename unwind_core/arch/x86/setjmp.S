// setjmp() and its relatives: see sdk/compat/drop_in/setjmp.cpp. A jmp_buf holds the return address of the call, SP
// after it and the frame pointer, each as 8 bytes, and the data of save_mask(). Preserved registers are found again by
// walking.
#if defined(__i386__)
#include "functions.inc"
        .text

        .macro  set_jump name
        function \name
        movl    4(%esp), %eax
        movl    (%esp), %ecx
        movl    %ecx, (%eax)
        leal    4(%esp), %ecx
        movl    %ecx, 8(%eax)
        movl    %ebp, 16(%eax)
        xorl    %ecx, %ecx
        movl    %ecx, 4(%eax)
        movl    %ecx, 12(%eax)
        movl    %ecx, 20(%eax)
        .endm

// The second argument of save_mask() is missing: memory above the first one belongs to the caller.
        .globl  _setjmp
        .set    _setjmp, setjmp
        set_jump setjmp
        subl    $12, %esp
        .cfi_adjust_cfa_offset 12
        movl    %eax, (%esp)
        movl    %ecx, 4(%esp)
        call    jitunwind_save_mask
        addl    $12, %esp
        .cfi_adjust_cfa_offset -12
        ret
        end_function setjmp

        set_jump sigsetjmp
        jmp     jitunwind_save_mask
        end_function sigsetjmp
#endif
        .section .note.GNU-stack, "", %progbits

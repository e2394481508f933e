// setjmp() and its relatives: see sdk/compat/drop_in/setjmp.cpp. A jmp_buf holds the return address of the call, SP,
// the frame pointer, and the data of save_mask(). Preserved registers are found again by walking.
#if defined(__aarch64__)
#include "functions.inc"
        .text

        .macro  set_jump name
        function \name
        mov     x9, sp
        stp     x30, x9, [x0]
        str     x29, [x0, #16]
        .endm

        .macro  end_jump name
        b       jitunwind_save_mask
        end_function \name
        .endm

        .globl  _setjmp
        .set    _setjmp, setjmp
        set_jump setjmp
        mov     w1, #0
        end_jump setjmp

        set_jump sigsetjmp
        end_jump sigsetjmp
#endif
        .section .note.GNU-stack, "", %progbits

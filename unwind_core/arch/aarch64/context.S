// int jitunwind_capture_context(ucontext_t *): stores the caller's registers, as they are when this function has
// returned. Writes only registers that the AAPCS64 lets a function preserve, and scratch registers as they stand. It is
// built a second time under its name in libunwind's interface.
#ifndef JITUNWIND_CAPTURE
#define JITUNWIND_CAPTURE jitunwind_capture_context
#endif
#if defined(__aarch64__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        function JITUNWIND_CAPTURE
        preserved str, stp, x0
        str     xzr, [x0, #.Lin_x0]             // the 0 that is returned
        str     x1, [x0, #.Lin_x0 + 8]
        stp     x2, x3, [x0, #.Lin_x0 + 2 * 8]
        stp     x4, x5, [x0, #.Lin_x0 + 4 * 8]
        stp     x6, x7, [x0, #.Lin_x0 + 6 * 8]
        stp     x8, x9, [x0, #.Lin_x0 + 8 * 8]
        stp     x10, x11, [x0, #.Lin_x0 + 10 * 8]
        stp     x12, x13, [x0, #.Lin_x0 + 12 * 8]
        stp     x14, x15, [x0, #.Lin_x0 + 14 * 8]
        stp     x16, x17, [x0, #.Lin_x0 + 16 * 8]
        str     x18, [x0, #.Lin_x0 + 18 * 8]
        stp     x29, x30, [x0, #.Lin_x0 + 29 * 8]
        mov     x1, sp
        stp     x1, x30, [x0, #.Lin_sp]
        str     xzr, [x0, #.Lin_pstate]
        // The head of the record: FPSIMD_MAGIC and its size; fpsr and fpcr.
        mov     x1, #0x8001
        movk    x1, #0x4650, lsl #16
        movk    x1, #528, lsl #32
        str     x1, [x0, #.Lin_vectors]
        mrs     x1, fpsr
        str     w1, [x0, #.Lin_vectors + 8]
        mrs     x1, fpcr
        str     w1, [x0, #.Lin_vectors + 12]
        mov     w0, #0
        ret
        end_function JITUNWIND_CAPTURE
#endif
        .section .note.GNU-stack, "", %progbits

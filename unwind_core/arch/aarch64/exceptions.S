// The functions of the exception ABI that need their caller's registers (Itanium C++ ABI, level I; AAPCS64, 6.1). Each
// stores the values that its caller will have when it returns, as a ucontext_t up to its vector registers, and calls
// its C++ half:
//   struct { void *go_on_at; long code; } half(first, second, third, const void *registers)
// If go_on_at is 0, code is returned to the caller. Otherwise another runtime's function of this name takes the call
// over, as if this one had never been called.
#if defined(__aarch64__)
#include "functions.inc"
        .set    .Lframe, .Lin_v0 + 16 * 16
        .section .text.hot, "ax", %progbits

        .macro  entry name, half
        .globl  __libunwind\name
        .set    __libunwind\name, \name
        .hidden \half
        function \name
        sub     sp, sp, #.Lframe
        .cfi_adjust_cfa_offset .Lframe
        stp     x29, x30, [sp, #.Lin_x0 + 29 * 8]
        .cfi_offset x29, .Lin_x0 + 29 * 8 - .Lframe
        .cfi_offset x30, .Lin_x0 + 30 * 8 - .Lframe
        stp     x0, x1, [sp, #.Lin_x0]
        str     x2, [sp, #.Lin_x0 + 2 * 8]
        preserved str, stp, sp
        add     x9, sp, #.Lframe
        stp     x9, x30, [sp, #.Lin_sp]
        mov     x3, sp
        bl      \half
        ldr     x30, [sp, #.Lin_x0 + 30 * 8]
        cbnz    x0, 1f
        mov     w0, w1
        add     sp, sp, #.Lframe
        .cfi_remember_state
        .cfi_adjust_cfa_offset -.Lframe
        .cfi_restore x29
        .cfi_restore x30
        ret
1:      .cfi_restore_state
        mov     x16, x0
        ldp     x0, x1, [sp, #.Lin_x0]
        ldr     x2, [sp, #.Lin_x0 + 2 * 8]
        add     sp, sp, #.Lframe
        .cfi_adjust_cfa_offset -.Lframe
        .cfi_restore x29
        .cfi_restore x30
        br      x16                             // to a function's entry, as procedure linkage does
        end_function \name
        .endm

        entry   _Unwind_RaiseException, jitunwind_eh_raise
        entry   _Unwind_Resume, jitunwind_eh_resume
        entry   _Unwind_Resume_or_Rethrow, jitunwind_eh_rethrow
        entry   _Unwind_ForcedUnwind, jitunwind_eh_force
        entry   _Unwind_Backtrace, jitunwind_eh_backtrace
#endif
        .section .note.GNU-stack, "", %progbits

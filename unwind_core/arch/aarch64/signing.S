// The CPU's operations on signed addresses, and the length of its vectors. Instructions of the former are hints, which
// CPUs without them execute as nops (A64 instruction set, PACIA1716, PACIB1716, XPACLRI). None of them faults for any
// address, as the authenticating ones may (FEAT_FPAC).
#if defined(__aarch64__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits

        .macro  signs name, hint
        .hidden \name
        function \name
        mov     x17, x0
        mov     x16, x1
        hint    #\hint
        mov     x0, x17
        ret
        end_function \name
        .endm

// Addr name(Addr address, Addr modifier)
        signs   jitunwind_sign_with_a, 8
        signs   jitunwind_sign_with_b, 10

// Addr name(Addr address): the instruction strips x30, and no other register.
        .hidden jitunwind_strip_signature
        function jitunwind_strip_signature
        mov     x9, x30
        .cfi_register x30, x9
        mov     x30, x0
        hint    #7
        mov     x0, x30
        mov     x30, x9
        .cfi_restore x30
        ret
        end_function jitunwind_strip_signature

// std::uint64_t name(), on CPUs with scalable vectors: the words of 8 bytes that one of them has in this thread. It is
// written as a number, for assemblers and options that lack it.
        .hidden jitunwind_vector_words
        function jitunwind_vector_words
        .inst   0x04e0e3e0              // cntd x0
        ret
        end_function jitunwind_vector_words
#endif
        .section .note.GNU-stack, "", %progbits

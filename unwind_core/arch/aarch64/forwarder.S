// jitunwind_forwarder: a function that calls another one and counts the calls in progress. This code never runs here,
// but in a copy at the beginning of a page of its own. The data are 64 KiB after it, the largest page of any kernel:
// the address of the other function, and from 64 on four counters, each on a cache line of its own. The stack's address
// selects a counter, so that threads seldom share one. Arguments and results are unchanged. There is a frame record,
// since no table describes the copy.
#if defined(__aarch64__)
#include "functions.inc"
        .section .rodata
        .globl  jitunwind_forwarder
        .hidden jitunwind_forwarder
        .globl  jitunwind_forwarder_end
        .hidden jitunwind_forwarder_end
        .p2align 4
        // The accesses are exclusive ones: the atomic instructions of ARMv8.1 may be missing.
        .macro  count amount
1:      ldaxr   x9, [x19]
        add     x9, x9, #(\amount)
        stlxr   w10, x9, [x19]
        cbnz    w10, 1b
        dmb     ish
        .endm
jitunwind_forwarder:
.Lbegin:
        .set    .Ltarget, .Lbegin + 65536
        .set    .Lcounters, .Ltarget + 64
        hint    #34                     // bti c
        stp     x29, x30, [sp, #-32]!
        mov     x29, sp
        str     x19, [sp, #16]
        lsr     x9, x29, #16
        mov     w10, #0x79b1
        movk    w10, #0x9e37, lsl #16   // Knuth, TAOCP 3, 6.4: the upper bits depend on all
        mul     w9, w9, w10
        lsr     w9, w9, #30
        adr     x19, .Lcounters
        add     x19, x19, x9, lsl #6
        // The call is counted before the address is read. A thread that has changed the address and finds no call
        // counted therefore knows that no call of the former function is in progress.
        count   1
        ldr     x9, .Ltarget
        blr     x9
        count   -1
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        ret
jitunwind_forwarder_end:
        .globl  jitunwind_forwarder_data
        .hidden jitunwind_forwarder_data
        .p2align 3
jitunwind_forwarder_data:
        .quad   .Ltarget - .Lbegin
#endif
        .section .note.GNU-stack, "", %progbits

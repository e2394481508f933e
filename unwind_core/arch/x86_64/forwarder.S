// jitunwind_forwarder: a function that calls another one and counts the calls in progress. This code never runs here,
// but in a copy at the beginning of a page of its own. The data are in the next page: the address of the other
// function, and from 64 on four counters, each on a cache line of its own. The stack's address selects a counter, so
// that threads seldom share one. Arguments and results are unchanged. There is a frame record, since no table describes
// the copy.
#if defined(__x86_64__) && defined(__LP64__)
#include <cet.h>  // .note.gnu.property, if the compiler is asked for it
        .section .rodata
        .globl  jitunwind_forwarder
        .hidden jitunwind_forwarder
        .globl  jitunwind_forwarder_end
        .hidden jitunwind_forwarder_end
        .p2align 4
jitunwind_forwarder:
.Lbegin:
        .set    .Ltarget, .Lbegin + 4096
        .set    .Lcounters, .Ltarget + 64
        endbr64
        pushq   %rbp
        movq    %rsp, %rbp
        pushq   %rbx
        subq    $8, %rsp
        movq    %rbp, %rbx
        shrq    $16, %rbx
        imull   $0x9e3779b1, %ebx, %ebx // Knuth, TAOCP 3, 6.4: the upper bits depend on all
        shrl    $30, %ebx
        shll    $6, %ebx
        leaq    .Lcounters(%rip), %rax
        addq    %rax, %rbx
        // The call is counted before the address is read. A thread that has changed the address and finds no call
        // counted therefore knows that no call of the former function is in progress.
        lock incq (%rbx)
        call    *.Ltarget(%rip)
        lock decq (%rbx)
        addq    $8, %rsp
        popq    %rbx
        popq    %rbp
        ret
jitunwind_forwarder_end:
        .globl  jitunwind_forwarder_data
        .hidden jitunwind_forwarder_data
        .p2align 3
jitunwind_forwarder_data:
        .quad   .Ltarget - .Lbegin
#endif
        .section .note.GNU-stack, "", %progbits

// jitunwind_forwarder: a function that calls another one and counts the calls in progress. This code never runs here,
// but in a copy at the beginning of a page of its own. The data are in the next page: the address of the other
// function, and from 64 on four counters, each on a cache line of its own. The stack's address selects a counter, so
// that threads seldom share one. Both arguments are passed on, and the result is unchanged. There is a frame record,
// since no table describes the copy.
#if defined(__i386__)
#include "functions.inc"
        .section .rodata
        .globl  jitunwind_forwarder
        .hidden jitunwind_forwarder
        .globl  jitunwind_forwarder_end
        .hidden jitunwind_forwarder_end
        .p2align 4
jitunwind_forwarder:
.Lbegin:
        .set    .Ldata, 4096
        endbr32
        pushl   %ebp
        movl    %esp, %ebp
        pushl   %ebx
        pushl   %esi
        subl    $8, %esp
        call    .Lhere
.Lhere: popl    %esi
        addl    $.Ldata - (.Lhere - .Lbegin), %esi
        movl    %ebp, %ebx
        shrl    $16, %ebx
        imull   $0x9e3779b1, %ebx, %ebx // Knuth, TAOCP 3, 6.4: the upper bits depend on all
        shrl    $30, %ebx
        shll    $6, %ebx
        leal    64(%esi, %ebx), %ebx
        // The call is counted before the address is read. A thread that has changed the address and finds no call
        // counted therefore knows that no call of the former function is in progress.
        lock incl (%ebx)
        pushl   12(%ebp)
        pushl   8(%ebp)
        call    *(%esi)
        lock decl (%ebx)
        movl    -4(%ebp), %ebx
        movl    -8(%ebp), %esi
        leave
        ret
jitunwind_forwarder_end:
        .globl  jitunwind_forwarder_data
        .hidden jitunwind_forwarder_data
        .p2align 2
jitunwind_forwarder_data:
        .long   .Ldata
#endif
        .section .note.GNU-stack, "", %progbits

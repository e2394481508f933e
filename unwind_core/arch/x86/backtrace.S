// int jitunwind_backtrace(void **addresses, int size, int callers_only): passes the caller's frame pointer, its SP
// after the call and the return address on, each as 8 bytes. It is built a second time as libunwind's unw_backtrace(),
// which begins with the caller. The function that it continues in may be in another library: the call is by procedure
// linkage, which needs the global offset table in ebx.
#ifndef JITUNWIND_BACKTRACE
#define JITUNWIND_BACKTRACE jitunwind_backtrace
#define JITUNWIND_WHOLE movl 56(%esp), %eax
#else
#define JITUNWIND_WHOLE xorl %eax, %eax
#endif
#if defined(__i386__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        function JITUNWIND_BACKTRACE
        pushl   %ebx
        .cfi_adjust_cfa_offset 4
        .cfi_offset %ebx, -8
        call    1f
        .cfi_adjust_cfa_offset 4
1:      popl    %ebx
        .cfi_adjust_cfa_offset -4
        addl    $_GLOBAL_OFFSET_TABLE_ + (. - 1b), %ebx
        subl    $40, %esp
        .cfi_adjust_cfa_offset 40
        movl    48(%esp), %eax
        movl    %eax, (%esp)
        movl    52(%esp), %eax
        movl    %eax, 4(%esp)
        JITUNWIND_WHOLE
        movl    %eax, 8(%esp)
        movl    %ebp, 12(%esp)
        leal    48(%esp), %eax
        movl    %eax, 20(%esp)
        movl    44(%esp), %eax
        movl    %eax, 28(%esp)
        xorl    %eax, %eax
        movl    %eax, 16(%esp)
        movl    %eax, 24(%esp)
        movl    %eax, 32(%esp)
        call    jitunwind_backtrace_from@PLT
        addl    $40, %esp
        .cfi_adjust_cfa_offset -40
        popl    %ebx
        .cfi_adjust_cfa_offset -4
        .cfi_restore %ebx
        ret
        end_function JITUNWIND_BACKTRACE
#endif
        .section .note.GNU-stack, "", %progbits

// int jitunwind_capture_context(ucontext_t *): stores the caller's registers, as they are when this function has
// returned. Further offsets: uc_mcontext.fpregs 96, __fpregs_mem 236, in it cw 0 (sys/ucontext.h). Writes only
// registers that the psABI lets a function preserve, and scratch registers as they stand. It is built a second time
// under its name in libunwind's interface.
#ifndef JITUNWIND_CAPTURE
#define JITUNWIND_CAPTURE jitunwind_capture_context
#endif
#if defined(__i386__)
#include "functions.inc"
        .section .text.hot, "ax", %progbits
        function JITUNWIND_CAPTURE
        movl    4(%esp), %eax
        movl    %edi, .Lin_edi(%eax)
        movl    %esi, .Lin_esi(%eax)
        movl    %ebp, .Lin_ebp(%eax)
        movl    %ebx, .Lin_ebx(%eax)
        movl    %edx, .Lin_edx(%eax)
        movl    %ecx, .Lin_ecx(%eax)
        movl    $0, .Lin_eax(%eax)      // the 0 that is returned
        leal    4(%esp), %ecx           // esp of the caller after the call
        movl    %ecx, .Lin_esp(%eax)
        movl    (%esp), %ecx
        movl    %ecx, .Lin_eip(%eax)
        leal    236(%eax), %ecx
        movl    %ecx, 96(%eax)
        fnstcw  236(%eax)
        xorl    %eax, %eax
        ret
        end_function JITUNWIND_CAPTURE
#endif
        .section .note.GNU-stack, "", %progbits

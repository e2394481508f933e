# Code without any unwind information, as compilers, assembler programmers and code generators write it. Position
# independent, so that a copy of all of it runs elsewhere: what it calls outside is in a register or behind `helper`.
# Each procedure is long unknown_x(long (*helper)(long), long n) and calls the helper once or more, if it calls at all.
#
# long unknown_all(long (*helper)(long), long n): calls all of them directly.
        .section unknown_code, "ax", @progbits
        .globl  unknown_all
        .type   unknown_all, @function

# Frames with a record, and without one.
record:
        push    %rbp
        mov     %rsp, %rbp
        sub     $32, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        add     $1, %rax
        leave
        ret
        .p2align 4
no_record:
        sub     $24, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        add     $24, %rsp
        ret
        .p2align 4
# The caller has a record, its callee has none: rbp says nothing of the callee's frame.
record_calls_no_record:
        push    %rbp
        mov     %rsp, %rbp
        push    %rbx
        sub     $8, %rsp
        mov     %rsi, %rbx
        call    no_record
        add     %rbx, %rax
        mov     -8(%rbp), %rbx
        leave
        ret
        .p2align 4
# rbp is a register like any other: 0, a number, an address of zeros.
rbp_is_zero:
        push    %rbp
        push    %rbx
        xor     %ebp, %ebp
        sub     $8, %rsp
        mov     %rdi, %rax
        lea     1(%rsi), %rdi
        call    *%rax
        lea     (%rax,%rbp), %rax
        add     $8, %rsp
        pop     %rbx
        pop     %rbp
        ret
        .p2align 4
rbp_points_to_zeros:
        push    %rbp
        sub     $64, %rsp
        movq    $0, 16(%rsp)
        movq    $0, 24(%rsp)
        lea     16(%rsp), %rbp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        nop
        add     $64, %rsp
        pop     %rbp
        ret
        .p2align 4
rbp_counts:
        push    %rbp
        mov     $3, %ebp
        push    %rbx
        push    %r12
        mov     %rdi, %rbx
        mov     %rsi, %r12
1:      mov     %r12, %rdi
        call    *%rbx
        add     %rax, %r12
        sub     $1, %ebp
        jnz     1b
        mov     %r12, %rax
        pop     %r12
        pop     %rbx
        pop     %rbp
        ret
        .p2align 4
# Old return addresses: where leaves_traces() had frames, and where its callees were called from.
leaves_traces:
        push    %rbp
        mov     %rsp, %rbp
        sub     $16, %rsp
        call    trace
        call    trace
        leave
        ret
trace:
        sub     $8, %rsp
        call    1f
        add     $8, %rsp
        ret
1:      push    %rbp
        mov     %rsp, %rbp
        call    2f
        pop     %rbp
        ret
2:      nop
        ret
        .p2align 4
large_frame_over_traces:
        mov     %rdi, %rax
        mov     %rsi, %rdi
        sub     $120, %rsp
        mov     %rax, 112(%rsp)
        mov     %rdi, 104(%rsp)
        nop
        call    *112(%rsp)
        sub     $32, %rsp
        nop
        add     $152, %rsp
        ret
        .p2align 4
over_traces:
        push    %rbx
        push    %rdi
        push    %rsi
        mov     %rdi, %rbx
        call    leaves_traces
        pop     %rsi
        pop     %rdi
        call    large_frame_over_traces
        pop     %rbx
        ret
        .p2align 4
# Nothing is called. One of them moves SP below an old return address, one uses what is below SP.
leaf:
        lea     (%rsi,%rsi,2), %rax
        sub     $1, %rax
        ret
leaf_with_stack:
        mov     %rsi, %rax
        sub     $40, %rsp
        mov     %rax, 8(%rsp)
        add     8(%rsp), %rax
        add     $40, %rsp
        ret
leaf_with_red_zone:
        mov     %rbx, -8(%rsp)
        mov     %rsi, %rbx
        lea     7(%rbx), %rax
        mov     -8(%rsp), %rbx
        ret
        .p2align 4
leaves:
        sub     $8, %rsp
        call    leaf
        mov     %rax, %rsi
        call    leaf_with_stack
        mov     %rax, %rsi
        call    leaf_with_red_zone
        add     $8, %rsp
        ret
        .p2align 4
# Jumps in place of calls: directly, by a register, by memory.
jumps:
        jmp     no_record
jumps_by_register:
        lea     record(%rip), %rax
        jmp     *%rax
jumps_by_memory:
        sub     $8, %rsp
        lea     no_record(%rip), %rax
        mov     %rax, (%rsp)
        add     $8, %rsp
        jmp     *-8(%rsp)
jumps_out_of_a_frame:
        push    %rbx
        mov     %rsi, %rbx
        lea     1(%rbx), %rsi
        pop     %rbx
        jmp     record_calls_no_record
        .p2align 4
# Calls by a preserved register and by memory that one points to.
calls_by_registers:
        push    %r12
        push    %r13
        sub     $24, %rsp
        lea     no_record(%rip), %r12
        mov     %r12, 8(%rsp)
        lea     8(%rsp), %r13
        mov     %rdi, 16(%rsp)
        call    *%r12
        mov     16(%rsp), %rdi
        mov     %rax, %rsi
        call    *(%r13)
        mov     16(%rsp), %rdi
        mov     %rax, %rsi
        lea     record(%rip), %rax
        call    *%rax
        add     $24, %rsp
        pop     %r13
        pop     %r12
        ret
        .p2align 4
# What stands behind a call that never returns is another procedure. It is called by way of others, and leaves rbp as
# its caller's caller had it.
may_end:
        push    %rbp
        mov     %rsp, %rbp
        test    %rsi, %rsi
        js      1f
        sub     $16, %rsp
        lea     behind_the_end(%rip), %rdx
        call    by_way_of_another
        leave
        ret
1:      call    never_returns
behind_the_end:
        sub     $24, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        nop
        add     $24, %rsp
        ret
never_returns:
        ud2
        .p2align 4
by_way_of_another:
        push    %rbx
        mov     %rdx, %rbx
        call    *%rbx
        pop     %rbx
        ret
        .p2align 4
# The stack is moved by amounts that are not in the code.
variable_frame:
        push    %rbp
        mov     %rsp, %rbp
        push    %rbx
        lea     40(,%rsi,8), %rcx
        and     $-16, %rcx
        sub     %rcx, %rsp
        and     $-32, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     -8(%rbp), %rbx
        leave
        ret
        .p2align 4
# Its CFA is in r10 alone, and then in memory.
realigned:
        lea     8(%rsp), %r10
        and     $-32, %rsp
        push    -8(%r10)
        push    %rbp
        mov     %rsp, %rbp
        push    %r10
        sub     $40, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     -8(%rbp), %r10
        leave
        lea     -8(%r10), %rsp
        ret
        .p2align 4
# On a stack of its own in between.
other_stack:
        push    %rbp
        mov     %rsp, %rbp
        push    %r12
        sub     $8, %rsp
        mov     %rsp, %r12
        mov     %rdx, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     %r12, %rsp
        add     $8, %rsp
        pop     %r12
        pop     %rbp
        ret
        .p2align 4
other_stack_without_record:
        push    %r12
        mov     %rsp, %r12
        mov     %rdx, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     %r12, %rsp
        pop     %r12
        ret
        .p2align 4
# A call for its return address; a return for a jump; arguments that the callee takes off; no return at all.
own_address:
        call    1f
1:      pop     %rax
        sub     $24, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        add     $24, %rsp
        ret
        .p2align 4
returns_in_place_of_a_jump:
        sub     $8, %rsp
        lea     1f(%rip), %rax
        push    %rax
        nop
        ret
1:      mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        add     $8, %rsp
        ret
        .p2align 4
takes_arguments_off:
        sub     $8, %rsp
        push    %rsi
        push    %rdi
        call    1f
        add     $8, %rsp
        ret
1:      mov     8(%rsp), %rax
        mov     16(%rsp), %rdi
        sub     $8, %rsp
        call    *%rax
        add     $8, %rsp
        ret     $16
        .p2align 4
spins:
        mov     $5, %ecx
        mov     (%rsp), %rdx
1:      sub     $1, %ecx
        jnz     1b
        mov     %rsi, %rax
        add     $8, %rsp
        jmp     *%rdx
        .p2align 4
# A table of jumps, and a loop that is entered at its end.
table:
        push    %rbx
        mov     %rdi, %rbx
        mov     %rsi, %rdi
        mov     %esi, %eax
        and     $3, %eax
        lea     5f(%rip), %rdx
        movslq  (%rdx,%rax,4), %rax
        add     %rdx, %rax
        jmp     *%rax
1:      call    *%rbx
        pop     %rbx
        ret
2:      lea     2(%rdi), %rdi
        call    *%rbx
        pop     %rbx
        ret
3:      mov     %rdi, %rax
4:      pop     %rbx
        ret
        .p2align 2
5:      .long   1b - 5b, 2b - 5b, 3b - 5b, 4b - 5b
        .p2align 4
loop:
        push    %rbx
        push    %r12
        sub     $8, %rsp
        mov     %rdi, %rbx
        mov     $2, %r12d
        jmp     2f
1:      mov     %rsi, %rdi
        call    *%rbx
        mov     %rax, %rsi
        sub     $1, %r12
2:      test    %r12, %r12
        jne     1b
        mov     %rsi, %rax
        add     $8, %rsp
        pop     %r12
        pop     %rbx
        ret
        .p2align 4
recursive:
        test    %rsi, %rsi
        jle     1f
        push    %rbp
        mov     %rsp, %rbp
        sub     $16, %rsp
        sub     $1, %rsi
        call    recursive
        pop     %rdx
        pop     %rdx
        pop     %rbp
1:      add     $1, %rax
        ret
        .p2align 4
# An interpreter: its pieces are jumped to and jump on. On top of the stack is an old return address, of a call by a
# register.
interpreter:
        push    %rbx
        sub     $48, %rsp
        mov     %rdi, %rbx
        lea     leaf(%rip), %rax
        call    *%rax
        sub     $8, %rsp
        lea     piece(%rip), %rdx
        jmp     *%rdx
        .p2align 4
# The same, where that call was by the register by which pieces are jumped to: where one begins the register has it.
interpreter_by_one_register:
        push    %rbx
        sub     $48, %rsp
        mov     %rdi, %rbx
        lea     leaf(%rip), %rdx
        call    *%rdx
        sub     $8, %rsp
        lea     piece(%rip), %rdx
        jmp     *%rdx
        .p2align 4
piece:
        sub     $24, %rsp
        mov     %rsi, %rdi
        call    *%rbx
        add     $24, %rsp
        lea     last_piece(%rip), %rdx
        jmp     *%rdx
        .p2align 4
last_piece:
        add     $56, %rsp
        pop     %rbx
        ret
        .p2align 4

unknown_all:
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rdi, %rbx
        mov     %rsi, %r12
        mov     %rdx, %r14
        xor     %r13d, %r13d
        .macro  all_of procedures:vararg
        .irp    procedure, \procedures
        mov     %rbx, %rdi
        mov     %r12, %rsi
        mov     %r14, %rdx
        call    \procedure
        add     %rax, %r13
        .endr
        .endm
        all_of  record, no_record, record_calls_no_record, rbp_is_zero, rbp_points_to_zeros, rbp_counts, over_traces
        all_of  leaves, jumps, jumps_by_register, jumps_by_memory, jumps_out_of_a_frame, calls_by_registers, may_end
        all_of  variable_frame, realigned, other_stack, other_stack_without_record, own_address
        all_of  returns_in_place_of_a_jump, takes_arguments_off, spins, table, loop, recursive, interpreter
        all_of  interpreter_by_one_register
        mov     %r13, %rax
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        ret
        .size   unknown_all, . - unknown_all
unknown_end:

# Where each begins, in the order of their places; then where the last one ends.
        .section .rodata
        .globl  unknown_starts, unknown_starts_end
unknown_starts:
        .irp    start, record, no_record, record_calls_no_record, rbp_is_zero, rbp_points_to_zeros, rbp_counts, leaves_traces, trace, large_frame_over_traces, over_traces, leaf, leaf_with_stack, leaf_with_red_zone, leaves, jumps, jumps_by_register, jumps_by_memory, jumps_out_of_a_frame, calls_by_registers, may_end, behind_the_end, never_returns, by_way_of_another, variable_frame, realigned, other_stack, other_stack_without_record, own_address, returns_in_place_of_a_jump, takes_arguments_off, spins, table, loop, recursive, interpreter, interpreter_by_one_register, piece, last_piece, unknown_all, unknown_end
        .long   \start - record
        .endr
unknown_starts_end:
        .section .note.GNU-stack, "", @progbits

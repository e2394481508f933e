// Hand-written procedures whose rows the tests know by heart. Each is judged_NAME .. judged_NAME_end.
        .text
        .macro procedure name
        .globl \name
        .type \name, @function
        .p2align 4
\name:
        .endm
        .macro end name
        .globl \name\()_end
\name\()_end:
        .size \name, . - \name
        .endm

// long judged_framed(long n, void (*helper)(void)): frame pointer, a call, two epilogues; clobbers what it saved.
procedure judged_framed
        push %rbp
        mov %rsp, %rbp
        push %rbx
        sub $24, %rsp
        mov %rdi, %rbx
        test %rbx, %rbx
        jne 1f
        xor %eax, %eax
        add $24, %rsp
        pop %rbx
        pop %rbp
        ret
1:      call *%rsi
        mov %rbx, %rax
        add $24, %rsp
        pop %rbx
        pop %rbp
        ret
end judged_framed

// long judged_sum(long n): n + (n-1) + ... + 1 by recursion, without a frame pointer and with rbp as a general register.
procedure judged_sum
        push %rbp
        push %r12
        sub $8, %rsp
        xor %eax, %eax
        mov %rdi, %rbp
        test %rdi, %rdi
        je 1f
        mov $-1, %r12
        lea -1(%rdi), %rdi
        call judged_sum
        add %rbp, %rax
1:      add $8, %rsp
        pop %r12
        pop %rbp
        ret
end judged_sum

// void judged_jump(void (*target)(void)): a tail call.
procedure judged_jump
        push %rbx
        xor %ebx, %ebx
        pop %rbx
        jmp *%rdi
end judged_jump

// long judged_popping(): calls a judged procedure that takes 16 bytes off the stack with its return.
procedure judged_popping
        sub $8, %rsp
        push $3
        push $4
        call judged_popped
        add $8, %rsp
        ret
end judged_popping
procedure judged_popped
        mov 8(%rsp), %rax
        add 16(%rsp), %rax
        ret $16
end judged_popped

// long judged_realigned(void (*helper)(void)): 64-byte alignment, no frame pointer; SP's old value lives at [rsp+64].
procedure judged_realigned
        push %rbx
        mov %rsp, %rax
        and $-64, %rsp
        sub $128, %rsp
        mov %rax, 64(%rsp)
        mov $7, %ebx
        call *%rdi
        mov %rbx, %rax
        mov 64(%rsp), %rsp
        pop %rbx
        ret
end judged_realigned

// void judged_signalled(long pid, long signal): kill(2), so that a handler runs at one of its own boundaries.
procedure judged_signalled
        push %rbx
        mov %edi, %ebx
        mov $62, %eax
        syscall
        pop %rbx
        ret
end judged_signalled

// Wrong on purpose: returns with rbx changed; runs into ud2; never ends.
procedure judged_forgetful
        mov $1, %ebx
        ret
end judged_forgetful
procedure judged_undefined
        push %rbx
        ud2
end judged_undefined
procedure judged_endless
        jmp judged_endless
end judged_endless

// void judged_ms(): leaves xmm6 as the Windows convention wants it, having used it.
procedure judged_ms
        sub $24, %rsp
        movups %xmm6, (%rsp)
        xorps %xmm6, %xmm6
        movups (%rsp), %xmm6
        add $24, %rsp
        ret
end judged_ms

        .section .note.GNU-stack, "", @progbits

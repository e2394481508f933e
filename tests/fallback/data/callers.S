# Functions with unwind information that call code which has none.
        .text
# int any_caller(int (*call)(void), void* caller): its unwind information is right, but for the return address, in whose
# place it has the second argument.
        .globl  any_caller
        .type   any_caller, @function
any_caller:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        push    %rsi
        .cfi_def_cfa_offset 24
        .cfi_offset rip, -24
        push    %rsi
        .cfi_def_cfa_offset 32
        call    *%rdi
        add     $16, %rsp
        .cfi_def_cfa_offset 16
        pop     %rbp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   any_caller, . - any_caller

# int call_by_scratch_register(int (*code)(int (*)(void)), int (*callee)(void)): what was called is nowhere any more once
# the code has called on.
        .globl  call_by_scratch_register
        .type   call_by_scratch_register, @function
call_by_scratch_register:
        .cfi_startproc
        sub     $8, %rsp
        .cfi_def_cfa_offset 16
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        add     $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   call_by_scratch_register, . - call_by_scratch_register

# The same by a register that all callees preserve.
        .globl  call_by_preserved_register
        .type   call_by_preserved_register, @function
call_by_preserved_register:
        .cfi_startproc
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        mov     %rdi, %rbx
        mov     %rsi, %rdi
        call    *%rbx
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   call_by_preserved_register, . - call_by_preserved_register

# int jump_badly(void (*target)(void)), int return_badly(void (*target)(void)): go there from a procedure that they call,
# the one by a jump, the other by a return. 3 when what is on top of the stack is returned to.
        .macro  goes_badly name, go:vararg
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        sub     $8, %rsp
        .cfi_def_cfa_offset 16
        call    1f
        mov     $3, %eax
        add     $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
1:      \go
        .size   \name, . - \name
        .endm
        goes_badly jump_badly, jmp *%rdi
        goes_badly return_badly, push %rdi; ret
        .section .note.GNU-stack, "", @progbits

# Machine code of the row cases, as one block that runs wherever it is copied: live_NAME .. live_NAME_end, of the size
# and with the instruction offsets that the case of that name says.
        .intel_syntax noprefix
        .text
        .macro procedure name
        .globl live_\name
live_\name:
        .endm
        .macro end name
        .globl live_\name\()_end
live_\name\()_end:
        .endm
        .macro jump target
        .byte 0xe9
        .long \target - . - 4
        .endm

        .globl live_code
live_code:

# Called by the others: gives 5 and leaves nothing as it was that it need not keep.
procedure helper
        mov eax, 5
        mov ecx, 0x11111111
        mov edx, 0x22222222
        mov esi, 0x33333333
        mov edi, 0x44444444
        mov r8, -8
        mov r9, -9
        mov r10, -10
        mov r11, -11
        ret

procedure returning_16
        mov eax, 5
        ret 16

procedure plain
        mov eax, 5
        ret

# Calls rdi with two words on the stack, which the callee pops.
procedure with_two_words
        push rbx
        push 1
        push 2
        call rdi
        pop rbx
        ret

# Calls rdi, which does not keep rbp.
procedure keeping_rbp
        push rbp
        call rdi
        pop rbp
        ret

        .macro example1_code
        push rbp
        mov rbp, rsp
        push rbx
        sub rsp, 24
        mov rbx, rdi
        test rbx, rbx
        jne 1f
        xor eax, eax
        add rsp, 24
        pop rbx
        pop rbp
        ret
1:      mov rdi, rbx
        call live_helper
        add rax, rbx
        add rsp, 24
        pop rbx
        pop rbp
        ret
        .endm

procedure example1
        example1_code
end example1

# Described by ALIAS.
procedure clone
        example1_code
end clone

procedure example2
        sub rsp, 40
        mov [rsp + 8], rdi
        call live_helper
        add rax, [rsp + 8]
        add rsp, 40
        ret
end example2

        .macro example4_prologue
        push rbp
        mov rbp, rsp
        push rbx
        push r12
        .endm
        .macro example4_epilogue
        pop r12
        pop rbx
        pop rbp
        ret
        .endm

procedure example4_body_11
        example4_prologue
        xor rbx, rbx
        xor r12, r12
        mov eax, 5
        example4_epilogue
end example4_body_11

procedure example4_body_17
        example4_prologue
        xor rbx, rbx
        xor r12, r12
        mov eax, 5
        .byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00
        example4_epilogue
end example4_body_17

procedure example4_no_body
        example4_prologue
        example4_epilogue
end example4_no_body

# rdi bytes of stack
procedure alloca
        push rbp
        mov rbp, rsp
        push rbx
        sub rsp, rdi
        call live_helper
        lea rsp, [rbp - 8]
        pop rbx
        pop rbp
        ret
end alloca

procedure leave
        push rbp
        mov rbp, rsp
        sub rsp, 32
        nop
        leave
        ret
end leave

procedure enter
        enter 32, 0
        leave
        ret
end enter

procedure realigned_without_frame_pointer
        push rbx
        mov rax, rsp
        and rsp, -64
        sub rsp, 128
        mov [rsp + 64], rax
        nop
        mov rsp, [rsp + 64]
        pop rbx
        ret
end realigned_without_frame_pointer

procedure realigned_with_saves
        push rbp
        mov rbp, rsp
        and rsp, -64
        sub rsp, 128
        mov [rsp + 64], r12
        xor r12d, r12d
        call live_helper
        mov r12, [rsp + 64]
        leave
        ret
end realigned_with_saves

procedure whole_probe_loop
        lea r11, [rsp - 65536]
1:      sub rsp, 4096
        mov qword ptr [rsp], 0
        cmp rsp, r11
        jne 1b
        sub rsp, 104
        nop
        add rsp, 65640
        ret
end whole_probe_loop

procedure endbr64
        endbr64
        push rbx
        nop
        nop
        pop rbx
        ret
end endbr64

procedure callee_pops_arguments
        sub rsp, 40
        push rax
        push rax
        call live_returning_16
        add rsp, 40
        ret
end callee_pops_arguments

procedure return_through_register
        pop rcx
        add rsp, 16
        jmp rcx
end return_through_register

procedure tail_call_with_more_arguments
        mov rax, [rsp]
        mov [rsp - 16], rax
        sub rsp, 16
        mov [rsp + 16], rdi
        jump live_returning_16
end tail_call_with_more_arguments

procedure tail_call_with_fewer_arguments
        pop rcx
        add rsp, 16
        push rcx
        jump live_plain
end tail_call_with_fewer_arguments

# rdi: the other stack; rsi: what to call on it
procedure call_on_another_stack
        push rbp
        mov rbp, rsp
        mov rsp, rdi
        call rsi
        mov rsp, rbp
        pop rbp
        ret
end call_on_another_stack

procedure red_zone_save
        mov [rsp - 64], rbx
        push rax
        pop rax
        mov rbx, [rsp - 64]
        ret
end red_zone_save

# rdi bytes of stack
procedure call_in_the_prologue
        push rbp
        mov rbp, rsp
        call live_plain
        push rbx
        sub rsp, rdi
        lea rsp, [rbp - 8]
        pop rbx
        pop rbp
        ret
end call_in_the_prologue

procedure data_between_code
        push rbx
        jmp 1f
        .quad 0x0605040302010006
1:      pop rbx
        ret
end data_between_code

procedure two_entry_points
        push rbx
        mov ebx, 1
        jmp 1f
        .globl live_second_entry_point
live_second_entry_point:
        push rbx
        xor ebx, ebx
1:      pop rbx
        ret
end two_entry_points

procedure hot_part
        push rbp
        mov rbp, rsp
        push rbx
        jump live_cold_part_of_it
end hot_part

procedure cold_part_of_it
        mov rbx, rdi
        call live_helper
        pop rbx
        pop rbp
        ret
end cold_part_of_it

# rdi bytes of stack
procedure interpreted_loop
        push rbp
        mov rbp, rsp
        sub rsp, rdi
        jump live_replaced_loop
end interpreted_loop

procedure replaced_loop
        call live_helper
        leave
        ret
end replaced_loop

procedure owned_frame_pointer
        mov rbp, rsp
        sub rsp, 24
        call live_helper
        mov rsp, rbp
        ret
end owned_frame_pointer

        .globl live_code_end
live_code_end:
        .section .note.GNU-stack,"",@progbits

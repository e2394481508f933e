// x86-64 code that calls through: void call(void (*f)(void*), void* argument), with a landing pad. Its description by
// the C interface, and the registers that tests of the interface use.
#pragma once

#include <jitunwind/c.h>

#include <cstdint>

namespace c_interface {

constexpr unsigned char k_call[] = {
    0x53,              // 0  push rbx
    0x48, 0x89, 0xf8,  // 1  mov rax,rdi
    0x48, 0x89, 0xf7,  // 4  mov rdi,rsi
    0xff, 0xd0,        // 7  call rax
    0x5b,              // 9  pop rbx
    0xc3,              // a  ret
    0x31, 0xc0,        // b  xor eax,eax         the landing pad
    0x5b,              // d  pop rbx
    0xc3,              // e  ret
};
constexpr std::uint64_t k_after_call = 9, k_landing_pad = 11;
/// Code that runs from here calls the function that k_scratch points to.
constexpr std::uint64_t k_call_of_scratch = 7;
constexpr const char* k_row_at_call = "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]";
/// A register that the code saves; one that calls do not preserve; the stack pointer; the program counter.
constexpr ju_reg k_saved = JU_X86_64_RBX, k_scratch = JU_X86_64_RAX, k_sp = JU_X86_64_RSP, k_pc = JU_X86_64_RIP;
constexpr ju_reg k_preserved[] = {JU_X86_64_RBX, JU_X86_64_RBP, JU_X86_64_R12, JU_X86_64_R13,
                                  JU_X86_64_R14, JU_X86_64_R15, JU_X86_64_RSP};
/// Names of another CPU.
constexpr ju_cpu k_other_cpu = JU_CPU_AARCH64;
constexpr ju_reg k_other_reg = JU_AARCH64_X19;

inline void describe_call(ju_builder* builder) {
  ju_push(builder, 0, 1, k_saved);
  ju_remember(builder);
  ju_pop(builder, 9, 10, k_saved);
  ju_restore(builder, 10, 11);
  ju_pop(builder, 13, 14, k_saved);
}

}  // namespace c_interface

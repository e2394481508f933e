// AArch64 code that calls through: void call(void (*f)(void*), void* argument), with a landing pad. Its description by
// the C interface, and the registers that tests of the interface use.
#pragma once

#include <jitunwind/c.h>

#include <cstdint>

namespace c_interface {

constexpr std::uint32_t k_call[] = {
    0xa9bf7bf3,  // 0   stp x19,x30,[sp,#-16]!
    0xaa0003e9,  // 4   mov x9,x0
    0xaa0103e0,  // 8   mov x0,x1
    0xd63f0120,  // c   blr x9
    0xa8c17bf3,  // 10  ldp x19,x30,[sp],#16
    0xd65f03c0,  // 14  ret
    0xd2800000,  // 18  mov x0,#0             the landing pad
    0xa8c17bf3,  // 1c  ldp x19,x30,[sp],#16
    0xd65f03c0,  // 20  ret
};
constexpr std::uint64_t k_after_call = 16, k_landing_pad = 24;
/// Code that runs from here calls the function that k_scratch points to.
constexpr std::uint64_t k_call_of_scratch = 4;
constexpr const char* k_row_at_call = "cfa=sp+16 x19=[cfa-16] ra=[cfa-8]";
/// A register that the code saves; one that calls do not preserve; the stack pointer; the program counter.
constexpr ju_reg k_saved = JU_AARCH64_X19, k_scratch = JU_AARCH64_X0, k_sp = JU_AARCH64_SP, k_pc = JU_AARCH64_PC;
constexpr ju_reg k_preserved[] = {JU_AARCH64_X19, JU_AARCH64_X20, JU_AARCH64_X21, JU_AARCH64_X22,
                                  JU_AARCH64_X23, JU_AARCH64_X24, JU_AARCH64_X25, JU_AARCH64_X26,
                                  JU_AARCH64_X27, JU_AARCH64_X28, JU_AARCH64_X29, JU_AARCH64_SP};
/// Names of another CPU.
constexpr ju_cpu k_other_cpu = JU_CPU_X86_64;
constexpr ju_reg k_other_reg = JU_X86_64_RBX;

inline void describe_call(ju_builder* builder) {
  ju_store_pair_pre(builder, 0, 4, k_saved, JU_AARCH64_X30, -16);
  ju_remember(builder);
  ju_load_pair_post(builder, 16, 20, k_saved, JU_AARCH64_X30, 16);
  ju_restore(builder, 20, 24);
  ju_load_pair_post(builder, 28, 32, k_saved, JU_AARCH64_X30, 16);
}

}  // namespace c_interface

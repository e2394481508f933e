// Registers of a context by libunwind's numbers, and the registers that tests of this CPU use.
#pragma once

#include <libunwind.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace jitunwind::test {

#if defined(__aarch64__)
inline constexpr int k_kept = UNW_AARCH64_X19, k_other_kept = UNW_AARCH64_X20, k_fp = UNW_AARCH64_X29;
inline constexpr int k_pc = UNW_AARCH64_PC, k_trap_bytes = 4;
#define JITUNWIND_TEST_KEPT "x19"
/// One instruction, by a pointer that a handler of its fault may change.
struct LoadThroughPointer {
  static constexpr int k_register = UNW_AARCH64_X0;
  [[gnu::always_inline]] static int load(const int* pointer) {
    int value = 0;
    register const int* at asm("x0") = pointer;
    asm volatile("ldr %w0, [%1]" : "=r"(value) : "r"(at) : "memory");
    return value;
  }
};
/// libunwind's number of x30 is that of the address at which a frame continues.
inline std::vector<int> words_of_context() {
  std::vector<int> all;
  for (int reg = UNW_AARCH64_X0; reg <= UNW_AARCH64_SP; ++reg)
    if (reg != UNW_AARCH64_X30) all.push_back(reg);
  return all;
}
/// struct sigcontext (asm/sigcontext.h): x0-x30, SP and pc side by side.
inline void* word_at(void* context, int reg) {
  return &static_cast<unw_context_t*>(context)->uc_mcontext.regs[0] + reg;
}
#elif defined(__i386__)
inline constexpr int k_kept = UNW_X86_EBX, k_other_kept = UNW_X86_ESI, k_fp = UNW_X86_EBP;
inline constexpr int k_pc = UNW_X86_EIP, k_trap_bytes = 2;
#define JITUNWIND_TEST_KEPT "ebx"
/// One instruction, by a pointer that a handler of its fault may change.
struct LoadThroughPointer {
  static constexpr int k_register = UNW_X86_EAX;
  [[gnu::always_inline]] static int load(const int* pointer) {
    int value = 0;
    asm volatile("movl (%%eax), %0" : "=r"(value) : "a"(pointer) : "memory");
    return value;
  }
};
inline std::vector<int> words_of_context() {
  std::vector<int> all;
  for (int reg = UNW_X86_EAX; reg <= UNW_X86_EIP; ++reg) all.push_back(reg);
  return all;
}
inline void* word_at(void* context, int reg) {
  constexpr int k_in_context[] = {REG_EAX, REG_EDX, REG_ECX, REG_EBX, REG_ESI, REG_EDI, REG_EBP, REG_ESP, REG_EIP};
  return &static_cast<ucontext_t*>(context)->uc_mcontext.gregs[k_in_context[reg]];
}
#else
inline constexpr int k_kept = UNW_X86_64_RBX, k_other_kept = UNW_X86_64_R12, k_fp = UNW_X86_64_RBP;
inline constexpr int k_pc = UNW_X86_64_RIP, k_trap_bytes = 2;
#define JITUNWIND_TEST_KEPT "rbx"
/// One instruction, by a pointer that a handler of its fault may change.
struct LoadThroughPointer {
  static constexpr int k_register = UNW_X86_64_RAX;
  [[gnu::always_inline]] static int load(const int* pointer) {
    int value = 0;
    asm volatile("movl (%%rax), %0" : "=r"(value) : "a"(pointer) : "memory");
    return value;
  }
};
inline std::vector<int> words_of_context() {
  std::vector<int> all;
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) all.push_back(reg);
  return all;
}
inline void* word_at(void* context, int reg) {
  constexpr int k_in_context[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  return &static_cast<ucontext_t*>(context)->uc_mcontext.gregs[k_in_context[reg]];
}
#endif

/// `context`: an unw_context_t, or the ucontext_t of a signal.
inline unw_word_t word(void* context, int reg) {
  std::uintptr_t value;  // a register's size
  std::memcpy(&value, word_at(context, reg), sizeof value);
  return value;
}
inline void set_word(void* context, int reg, unw_word_t value) {
  const auto word = static_cast<std::uintptr_t>(value);
  std::memcpy(word_at(context, reg), &word, sizeof word);
}

}  // namespace jitunwind::test

// The registers of a stopped thread that ptrace reads, by libunwind's numbers.
#pragma once

#include <gtest/gtest.h>
#include <libunwind.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace jitunwind::test {

struct TracedRegisters {
  std::vector<std::pair<int, unw_word_t>> words{};
  std::vector<std::pair<int, std::array<std::byte, 16>>> vectors{};  ///< none: calls preserve no vector register
  /// A register that a test may change.
  static constexpr int k_any = UNW_X86_64_R15;
  static constexpr int k_no_vector = 17;

  explicit TracedRegisters(pid_t thread) {
    user_regs_struct of;
    EXPECT_EQ(::ptrace(PTRACE_GETREGS, thread, nullptr, &of), 0);
    words = {{UNW_X86_64_RAX, of.rax}, {UNW_X86_64_RDX, of.rdx}, {UNW_X86_64_RCX, of.rcx}, {UNW_X86_64_RBX, of.rbx},
             {UNW_X86_64_RSI, of.rsi}, {UNW_X86_64_RDI, of.rdi}, {UNW_X86_64_RBP, of.rbp}, {UNW_X86_64_RSP, of.rsp},
             {UNW_X86_64_R8, of.r8},   {UNW_X86_64_R9, of.r9},   {UNW_X86_64_R10, of.r10}, {UNW_X86_64_R11, of.r11},
             {UNW_X86_64_R12, of.r12}, {UNW_X86_64_R13, of.r13}, {UNW_X86_64_R14, of.r14}, {UNW_X86_64_R15, of.r15},
             {UNW_X86_64_RIP, of.rip}};
  }
  static unw_word_t signature_of_code(pid_t) { return 0; }
};

}  // namespace jitunwind::test

// The registers of a stopped thread that ptrace reads, by libunwind's numbers.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <libunwind.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace jitunwind::test {

struct TracedRegisters {
  std::vector<std::pair<int, unw_word_t>> words{};
  std::vector<std::pair<int, std::array<std::byte, 16>>> vectors{};  ///< calls preserve their low halves
  /// A register that a test may change.
  static constexpr int k_any = UNW_AARCH64_X27;
  static constexpr int k_no_vector = UNW_AARCH64_X0;

  explicit TracedRegisters(pid_t thread) {
    user_regs_struct of;
    ask(thread, NT_PRSTATUS, &of, sizeof of);
    for (int i = 0; i <= 30; ++i) words.emplace_back(UNW_AARCH64_X0 + i, of.regs[i]);
    words.emplace_back(UNW_AARCH64_SP, of.sp);
    words.emplace_back(UNW_AARCH64_PC, of.pc);
    user_fpsimd_struct vector_unit;
    ask(thread, NT_PRFPREG, &vector_unit, sizeof vector_unit);
    for (int i = 8; i <= 15; ++i) {
      vectors.emplace_back(UNW_AARCH64_V0 + i, std::array<std::byte, 16>{});
      std::memcpy(vectors.back().second.data(), &vector_unit.vregs[i], 16);
    }
  }
  static unw_word_t signature_of_code(pid_t thread) {
    unw_word_t masks[2]{};  // struct user_pac_mask (asm/ptrace.h): of data and of code
    ask(thread, NT_ARM_PAC_MASK, masks, sizeof masks);
    return masks[1];
  }

 private:
  static void ask(pid_t thread, int kind, void* registers, std::size_t size) {
    iovec vector{registers, size};
    EXPECT_EQ(::ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(static_cast<std::intptr_t>(kind)), &vector),
              0);
  }
};

}  // namespace jitunwind::test

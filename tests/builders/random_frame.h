// Procedures whose frames are built, used and left in ways chosen at random, with the descriptions of their
// instructions.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {

inline constexpr std::array k_preserved{x86_64::rbx, x86_64::rbp, x86_64::r12, x86_64::r13, x86_64::r14, x86_64::r15};

/// One call of a builder.
struct Said {
  enum class Kind : std::uint8_t {
    push,
    push_value,
    enter,
    allocate,
    allocate_variable,
    realign,
    set_frame_pointer,
    save_at_sp,
    save_at_fp,
    pop,
    deallocate,
    restore_sp,
    leave,
    reload,
    pop_return_address,
    callee_pops,
    remember,
    restore,
  };
  Kind kind;
  Instruction at{0, 0};  ///< remember: none
  x86_64::Reg reg = x86_64::Reg(0);
  std::int64_t number = 0;
};

/// Makes the description of a procedure of that size from these statements.
Result<Description, BuildError> described(const std::vector<Said>& said, std::uint64_t size);

/// Says the same to marks.
void mark(x86_64::Marks& marks, const std::vector<Said>& said);

/// long f(void (*helper)(), long n): returns k_random_result by its n-th early return, or at its end if there is no
/// such one.
struct RandomFrame {
  std::vector<std::uint8_t> code;
  std::vector<Said> said;
  int early_returns = 0;
  bool helper_pops = false;  ///< the helper it calls must pop 16 bytes
  bool has_pointer = false;  ///< the frame is found through rbp somewhere
};
inline constexpr int k_random_result = 4711;

RandomFrame random_frame(std::mt19937_64& random);

}  // namespace jitunwind::test

// Procedures whose frames are built, used and left in ways chosen at random, and their descriptions.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registration.h"

namespace jitunwind::test {

/// long f(long (*helper)(long), long n): calls the helper, ends by its n-th early return, or at its end where there is
/// no such one, and returns k_frame_result. All that calls preserve is written to in it, as far as it is saved.
struct RandomFrame {
  std::vector<std::uint32_t> code;
  Result<Description, BuildError> description;
  int early_returns = 0;
  int said = 0;  ///< numbers in its description
};
inline constexpr int k_frame_result = 4711;

/// `lie`: A64Assembler.
RandomFrame random_frame(std::mt19937_64& random, int lie = -1);

/// A procedure that marks describe. It is the one that random_frame() makes of these numbers.
struct MarkedFrame {
  std::vector<std::uint32_t> code;
  aarch64::Marks marks;
};
MarkedFrame random_marked_frame(std::mt19937_64& random);

/// Executable memory.
class CodePages {
 public:
  explicit CodePages(std::size_t bytes);
  ~CodePages();
  CodePages(const CodePages&) = delete;
  CodePages& operator=(const CodePages&) = delete;

  /// Returns the address of the copy.
  void* add(const std::vector<std::uint32_t>& code);

 private:
  std::size_t size_;
  std::size_t used_ = 0;
  char* memory_;
};

}  // namespace jitunwind::test

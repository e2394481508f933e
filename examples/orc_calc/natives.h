// Functions in C++ that the language can call.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace calc {

/// The exception of natives: the error, and the stack of its place.
class CalculationError : public std::runtime_error {
 public:
  explicit CalculationError(const std::string& what);
  /// Prints one line for each frame.
  const std::vector<std::string>& stack() const { return stack_; }

 private:
  std::vector<std::string> stack_;
};

struct Native {
  const char* name;
  unsigned parameters;
  std::uintptr_t address;  ///< double (*)(double, ...)
};
std::span<const Native> natives();

/// Called by functions that have used up the stack. Throws CalculationError.
void stack_is_full();

}  // namespace calc

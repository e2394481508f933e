// Functions in C++ that the language can call.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace calc {

/// What natives throw: what went wrong, and the stack it went wrong on.
class CalculationError : public std::runtime_error {
 public:
  explicit CalculationError(const std::string& what);
  /// One line a frame.
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

/// Functions that call this have used up the stack. Throws CalculationError.
void stack_is_full();

}  // namespace calc

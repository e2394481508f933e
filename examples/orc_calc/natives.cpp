#include "examples/orc_calc/natives.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "examples/orc_calc/stack_trace.h"

namespace calc {

CalculationError::CalculationError(const std::string& what) : std::runtime_error(what), stack_(stack_trace()) {}

namespace native {

static double print(double x) {
  std::printf("%g\n", x);
  return x;
}

/// An object that lives as long as its frame, whether that returns or an exception passes.
struct Scope {
  explicit Scope(double number) : number_(number) { std::printf("enter %g\n", number_); }
  ~Scope() { std::printf("leave %g\n", number_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  double number_;
};

static double root(double x) {
  if (x < 0) throw CalculationError("square root of " + std::to_string(x));
  return std::sqrt(x);
}

static double check(double x, double low, double high) {
  const Scope scope(x);
  if (!(x >= low && x <= high)) throw CalculationError(std::to_string(x) + " is out of bounds");
  return x;
}

static double fail(double code) { throw CalculationError("failed with code " + std::to_string(code)); }

/// The stack of its call.
static double trace() {
  for (const std::string& line : stack_trace()) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace native

std::span<const Native> natives() {
  const auto address = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  static const std::array all{
      Native{"print", 1, address(&native::print)}, Native{"root", 1, address(&native::root)},
      Native{"check", 3, address(&native::check)}, Native{"fail", 1, address(&native::fail)},
      Native{"trace", 0, address(&native::trace)},
  };
  return all;
}

void stack_is_full() { throw CalculationError("recursion too deep"); }

}  // namespace calc

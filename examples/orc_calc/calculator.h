// Compiles programs with an LLJIT and runs them. Each function and each expression has a module.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "examples/orc_calc/natives.h"
#include "examples/orc_calc/syntax.h"

namespace calc {

class Calculator {
 public:
  /// The address of a native for compiled code: another address for it, or its own.
  using Linkage = std::uint64_t (*)(const Native& native);
  /// The error is LLVM's.
  static llvm::Expected<std::unique_ptr<Calculator>> create(Linkage linkage);

  /// Defines the functions, then evaluates the expressions in their order and prints their values. Throws SyntaxError
  /// before anything runs, the exceptions of natives, and std::runtime_error with LLVM's message.
  void run(std::string_view program);

 private:
  explicit Calculator(std::unique_ptr<llvm::orc::LLJIT> jit) : jit_(std::move(jit)) {}

  double evaluate(const Item& item);

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::map<std::string, unsigned> functions_;  ///< with the number of their parameters; natives, too
};

}  // namespace calc

// A virtual machine: makes native code of a script and runs it.
//
//   toy::Machine machine(toy::standard_natives(), std::cout);
//   machine.load(source, "primes.toy");
//   machine.run({});                        // throws what the script throws and does not catch
//
// The machine serves one thread at a time. Values that a script made (texts, errors) live as long as the machine: there
// is no collector.
#pragma once

#include <jitunwind/asmjit.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "examples/toy_vm/code_generator.h"
#include "examples/toy_vm/parser.h"
#include "examples/toy_vm/stack_trace.h"
#include "examples/toy_vm/value.h"

namespace toy {

struct Native {
  const char* name;
  std::uint32_t arity;
  Code code;
};

class Machine {
 public:
  Machine(std::span<const Native> natives, std::ostream& out);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Throws SyntaxError, or std::runtime_error if asmjit does. Called once, if ever.
  void load(std::string_view script, std::string_view script_name);
  /// Calls the script's function "main". Exceptions leave it, and uncaught() then has the stack of their throw.
  Value run(std::span<const Value> arguments);
  /// The stack of the last exception that left run(), at the time of the throw, when no destructor had run.
  const StackTrace& uncaught() const { return uncaught_; }

  // Functions that natives call.

  /// Exceptions pass. Throws ScriptError if the value is no function, or one of another number of arguments.
  Value call(Value function, std::span<const Value> arguments);
  Value text(std::string_view text);
  /// The value of the exception that is being handled, as `catch` gives it to a script.
  Value error(const std::exception& caught);
  /// Throws a ScriptError.
  [[noreturn]] void fail(std::string_view message);
  std::ostream& out() { return out_; }

  // Functions that the code generator and traces call.

  /// Keeps the stack while an exception is being thrown that will leave run().
  void see_uncaught() noexcept;
  jitunwind::AsmjitRuntime& code_memory() { return code_memory_; }
  const std::deque<Function>& functions() const { return functions_; }
  const std::uintptr_t& stack_limit() const { return stack_limit_; }
  /// The result is "primes.toy:7" for a return address into code of a script; "" for others.
  std::string position(std::uintptr_t return_address) const;

 private:
  void check_arity(const Function& function, std::span<const Value> arguments);

  using Entry = Value (*)(Machine&, const Value* arguments, Code function);
  struct Compiled {
    std::uintptr_t begin, end;
    std::vector<CodeLine> lines;
  };

  jitunwind::AsmjitRuntime code_memory_;  // first: registered code is cancelled last
  std::ostream& out_;
  std::deque<Function> functions_;  // never move: code holds their addresses
  std::vector<NativeName> native_names_;
  std::vector<Compiled> compiled_;
  std::string script_name_;
  const Function* main_ = nullptr;
  Entry entry_ = nullptr;
  std::unordered_set<std::string> texts_;  // nodes never move
  std::deque<CaughtError> errors_;
  std::uintptr_t stack_limit_ = 0;
  StackTrace uncaught_;
};

}  // namespace toy

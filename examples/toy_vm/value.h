// The values of scripts. A native function looks like one of a script.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace toy {

class Machine;
struct Function;
struct CaughtError;

enum class Kind : std::uint64_t { number, text, function, error };

/// Texts, functions and errors belong to the machine and live as long as it does. Equal texts are the same pointer.
struct Value {
  union {
    std::int64_t number = 0;
    const std::string* text;
    const Function* function;
    const CaughtError* error;
  };
  Kind kind = Kind::number;

  static Value of(std::int64_t n) { return {.number = n, .kind = Kind::number}; }
  static Value of(const std::string* t) { return {.text = t, .kind = Kind::text}; }
  static Value of(const Function* f) { return {.function = f, .kind = Kind::function}; }
  static Value of(const CaughtError* e) { return {.error = e, .kind = Kind::error}; }
};
// The generated code has a Value in 16 bytes of a frame, in rax and rdx as a result (x86-64 psABI 3.2.3), and knows
// that 0 is a number's kind.
static_assert(sizeof(Value) == 16 && std::is_trivially_copyable_v<Value>);
static_assert(static_cast<int>(Kind::number) == 0);

using Code = Value (*)(Machine&, const Value* arguments);

struct Function {
  std::string name;
  std::uint32_t arity = 0;
  Code code = nullptr;
};

/// A C++ exception, as the value that `catch` gives to a script. `throw` of it throws the original exception again.
struct CaughtError {
  std::exception_ptr exception;
  std::string message;
};

/// The exception of `throw` in a script, and of the machine itself; C++ catches it like any other exception.
class ScriptError : public std::runtime_error {
 public:
  ScriptError(Value value, const std::string& message) : std::runtime_error(message), value_(value) {}
  /// Valid as long as the machine lives.
  Value value() const noexcept { return value_; }

 private:
  Value value_;
};

/// The text that print() shows.
std::string to_text(Value value);

}  // namespace toy

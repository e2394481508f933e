// The language: numbers, functions of numbers, and handlers for functions that throw.
//
//   item       = "def" name "(" [name {"," name}] ")" expression | expression          each ended by ";" or the end
//   expression = "let" name "=" expression "in" expression
//              | "if" expression "then" expression "else" expression
//              | "try" expression "else" expression        the second one if the first one throws
//              | operators < > == + - * / of expressions, - of one
//              | number | name | name "(" [expression {"," expression}] ")" | "(" expression ")"
//   "#" begins a comment.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace calc {

struct Position {
  unsigned line = 1;
  unsigned column = 1;
};

/// what() is "line:column: message".
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(Position at, const std::string& message)
      : std::runtime_error(std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + message) {}
};

struct Expression {
  enum class Kind : std::uint8_t {
    number,
    name,
    call,          ///< operands: arguments
    negate,        ///< operands: one
    operation,     ///< name: the operator; operands: left, right
    let,           ///< name; operands: value, body
    if_then_else,  ///< operands: condition, then, else
    try_else,      ///< operands: tried, else
  };
  Kind kind = Kind::number;
  Position at{};
  double number = 0;
  std::string name{};
  std::vector<std::unique_ptr<Expression>> operands{};
};

struct Item {
  Position at{};
  std::string function{};  ///< empty: an expression to evaluate
  std::vector<std::string> parameters{};
  std::unique_ptr<Expression> body{};
};

/// Throws SyntaxError, at the first mistake.
std::vector<Item> parse(std::string_view text);

}  // namespace calc

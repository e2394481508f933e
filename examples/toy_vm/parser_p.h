// The parser: tokens to byte code by recursive descent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "examples/toy_vm/function_writer.h"
#include "examples/toy_vm/parser.h"

namespace toy {

class Parser {
 public:
  Parser(std::string_view script, std::span<const NativeName> natives);
  Program program();

 private:
  // The ways in which statements leave their surroundings.
  enum class Way : std::uint8_t { returns, breaks, continues };
  /// A construct that a statement may have to leave: a loop; the parts of a try statement before `finally`, whose every
  /// way out leads through the code of `finally`; and that code.
  struct Surrounding {
    enum class Kind : std::uint8_t { loop, guarded, finishing };
    /// Leads `way` out to the surrounding number `to`.
    struct Exit {
      Way way;
      std::size_t to;
      bool operator==(const Exit&) const = default;
    };

    Kind kind;
    FunctionWriter::Jumps ends{};  // jumps to the code after the loop; to the code of `finally`
    std::int64_t top = 0;          // of a loop
    // A try statement has its slots, and the continuations of the code of `finally` by the number that it finds in one
    // of them.
    std::uint32_t slots = 0;
    std::int32_t handler = -1;
    std::vector<Exit> exits{};

    std::uint32_t result() const { return slots; }
    std::uint32_t kept_exception() const { return slots + 1; }
    std::uint32_t exit_number() const { return slots + 2; }
  };

  // parser.cpp
  void declare_functions();
  void function();
  const Token& token(std::size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const Token& take();
  bool accept(std::string_view word);
  void expect(std::string_view word);
  std::string name_of(std::string_view what);
  [[noreturn]] void fail(const std::string& text) const;
  [[noreturn]] void fail_expecting(std::string_view what) const;
  void declare_local(const std::string& name, std::uint32_t slot);
  const std::uint32_t* find_local(std::string_view name) const;

  // parser_statements.cpp
  void block();
  void statement();
  void let_statement();
  void assignment();
  void if_statement();
  void while_statement();
  void return_statement();
  void jump_statement(Way way);

  // parser_try.cpp
  void try_statement();
  void catching_part();
  void finally_part();
  std::size_t behind_block(std::size_t open) const;
  void leave(Way way, std::size_t to);
  void run_finally(Surrounding& guarded, std::size_t exit_number);

  // parser_expressions.cpp
  void expression(int binding = 0);
  void operand();
  void name_or_call();
  void either(std::int64_t decision, int binding);
  void emit(Op op, std::int64_t operand = 0);

  class Nesting;
  struct Local {
    std::string name;
    std::uint32_t slot;
    std::size_t scope;
  };

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  Program program_;
  std::size_t natives_;
  std::map<std::string, std::size_t, std::less<>> functions_;
  // State of the function that is being read.
  FunctionWriter* writer_ = nullptr;
  std::vector<Local> locals_;
  std::size_t scope_ = 0;
  std::vector<Surrounding> surroundings_;
  unsigned nesting_ = 0;
};

/// Scripts nest as deeply as people write, not as deep as this program's stack is.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > k_deepest) parser_.fail("nested too deep");
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr unsigned k_deepest = 200;
  Parser& parser_;
};

}  // namespace toy

// Conversion of text to tokens.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace toy {

/// A script that cannot be run. what() begins with the line: "3: unknown name 'x'".
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(std::uint32_t line, const std::string& text)
      : std::runtime_error(std::to_string(line) + ": " + text), line_(line) {}
  std::uint32_t line() const noexcept { return line_; }

 private:
  std::uint32_t line_;
};

struct Token {
  enum class Kind : std::uint8_t { name, number, text, word, end };  ///< word: a keyword or a sign, by its spelling
  Kind kind;
  std::uint32_t line;
  std::string spelling;  ///< of a text: its meaning
  std::int64_t number = 0;

  bool is(std::string_view word) const { return kind == Kind::word && spelling == word; }
  /// The form for messages: "'while'", "end of script".
  std::string shown() const;
};

/// The last one is the end. Throws SyntaxError.
std::vector<Token> tokens_of(std::string_view script);

}  // namespace toy

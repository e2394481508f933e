// Conversion of text to tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "examples/orc_calc/syntax.h"

namespace calc {

struct Token {
  enum class Kind : std::uint8_t { number, name, keyword, sign, end };
  Kind kind = Kind::end;
  Position at{};
  std::string_view text{};  ///< part of the text that was read
  double number = 0;
};

/// The last one is of kind end. Throws SyntaxError.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace calc

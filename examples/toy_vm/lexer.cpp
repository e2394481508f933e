#include "examples/toy_vm/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace toy {
namespace {

using namespace std::string_view_literals;

constexpr std::array k_keywords{"and"sv, "break"sv, "catch"sv, "continue"sv, "else"sv,  "finally"sv, "fn"sv,   "if"sv,
                                "let"sv, "not"sv,   "or"sv,    "return"sv,   "throw"sv, "try"sv,     "while"sv};
// Longer ones come first.
constexpr std::array k_signs{"=="sv, "!="sv, "<="sv, ">="sv, "<"sv, ">"sv, "="sv, "+"sv, "-"sv,
                             "*"sv,  "/"sv,  "%"sv,  "("sv,  ")"sv, "{"sv, "}"sv, ","sv, ";"sv};

// The letters are those of ASCII, whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string shown_character(char c) {
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  constexpr auto digits = "0123456789abcdef"sv;
  const auto byte = static_cast<unsigned char>(c);
  return std::string("byte 0x") + digits[byte / 16] + digits[byte % 16];
}

class Lexer {
 public:
  explicit Lexer(std::string_view script) : rest_(script) {}

  std::vector<Token> tokens() {
    std::vector<Token> found;
    for (skip_blanks(); !rest_.empty(); skip_blanks()) found.push_back(token());
    found.push_back({Token::Kind::end, line_, {}});
    return found;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (is_space(rest_[0]) || rest_[0] == '#')) {
      if (rest_[0] == '#') rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      while (!rest_.empty() && is_space(rest_[0])) {
        if (rest_[0] == '\n') ++line_;
        rest_.remove_prefix(1);
      }
    }
  }

  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view take_while(bool (*belongs)(char)) {
    return take(static_cast<std::size_t>(std::find_if_not(rest_.begin(), rest_.end(), belongs) - rest_.begin()));
  }

  Token token() {
    if (is_letter(rest_[0])) {
      const std::string_view name = take_while(is_name_part);
      const bool keyword = std::ranges::find(k_keywords, name) != k_keywords.end();
      return {keyword ? Token::Kind::word : Token::Kind::name, line_, std::string(name)};
    }
    if (is_digit(rest_[0])) return number();
    if (rest_[0] == '"') return text();
    const auto sign = std::ranges::find_if(k_signs, [&](std::string_view s) { return rest_.starts_with(s); });
    if (sign == k_signs.end()) throw SyntaxError(line_, "unexpected " + shown_character(rest_[0]));
    return {Token::Kind::word, line_, std::string(take(sign->size()))};
  }

  Token number() {
    const std::string_view digits = take_while(is_name_part);
    Token token{Token::Kind::number, line_, std::string(digits)};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.number);
    if (end != digits.data() + digits.size()) throw SyntaxError(line_, "'" + token.spelling + "' is no number");
    if (error != std::errc()) throw SyntaxError(line_, "number " + token.spelling + " does not fit into 64 bits");
    return token;
  }

  Token text() {
    Token token{Token::Kind::text, line_, {}};
    take(1);
    for (;;) {
      if (rest_.empty() || rest_[0] == '\n') throw SyntaxError(line_, "text without closing '\"'");
      const char c = take(1)[0];
      if (c == '"') return token;
      token.spelling += c == '\\' ? escaped() : c;
    }
  }

  char escaped() {
    if (rest_.empty()) throw SyntaxError(line_, "text without closing '\"'");
    switch (const char c = take(1)[0]) {
      case 'n':
        return '\n';
      case '"':
      case '\\':
        return c;
      default:
        throw SyntaxError(line_, "unknown escape: \\ and " + shown_character(c));
    }
  }

  std::string_view rest_;
  std::uint32_t line_ = 1;
};

}  // namespace

std::string Token::shown() const {
  if (kind == Kind::end) return "end of script";
  if (kind == Kind::text) return "a text";
  return "'" + spelling + "'";
}

std::vector<Token> tokens_of(std::string_view script) { return Lexer(script).tokens(); }

}  // namespace toy

#include "examples/orc_calc/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace calc {
namespace {

using namespace std::string_view_literals;

constexpr std::array k_keywords{"def"sv, "else"sv, "if"sv, "in"sv, "let"sv, "then"sv, "try"sv};
constexpr std::array k_signs{"=="sv, "<"sv, ">"sv, "="sv, "+"sv, "-"sv, "*"sv, "/"sv, "("sv, ")"sv, ","sv, ";"sv};

// The letters are those of ASCII, whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  std::vector<Token> tokens() {
    std::vector<Token> found;
    for (skip_blanks(); !rest_.empty(); skip_blanks()) found.push_back(token());
    found.push_back({Token::Kind::end, at_, {}, 0});
    return found;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty()) {
      if (rest_[0] == '#')
        take(std::min(rest_.find('\n'), rest_.size()));
      else if (" \t\r\n"sv.find(rest_[0]) != std::string_view::npos)
        take(1);
      else
        return;
    }
  }

  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    for (const char c : taken) at_ = c == '\n' ? Position{at_.line + 1, 1} : Position{at_.line, at_.column + 1};
    rest_.remove_prefix(count);
    return taken;
  }

  Token token() {
    const Position at = at_;
    if (is_digit(rest_[0]) || rest_[0] == '.') return number();
    if (is_name_part(rest_[0])) {
      const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_name_part);
      const std::string_view text = take(static_cast<std::size_t>(end - rest_.begin()));
      const bool is_keyword = std::ranges::find(k_keywords, text) != k_keywords.end();
      return {is_keyword ? Token::Kind::keyword : Token::Kind::name, at, text, 0};
    }
    for (const std::string_view sign : k_signs)
      if (rest_.starts_with(sign)) return {Token::Kind::sign, at, take(sign.size()), 0};
    const auto byte = static_cast<unsigned char>(rest_[0]);
    if (byte > ' ' && byte < 0x7f) throw SyntaxError(at, std::string("unexpected '") + rest_[0] + "'");
    throw SyntaxError(at, "unexpected byte " + std::to_string(byte));
  }

  Token number() {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) throw SyntaxError(at_, "number out of range");
    if (error != std::errc()) throw SyntaxError(at_, "'.' without digits");
    const Position at = at_;
    const std::string_view text = take(static_cast<std::size_t>(end - rest_.data()));
    if (!rest_.empty() && (is_name_part(rest_[0]) || rest_[0] == '.'))
      throw SyntaxError(at_, std::string("unexpected '") + rest_[0] + "' behind a number");
    return {Token::Kind::number, at, text, value};
  }

  std::string_view rest_;
  Position at_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).tokens(); }

}  // namespace calc

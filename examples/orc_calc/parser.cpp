#include <array>
#include <utility>

#include "examples/orc_calc/lexer.h"

namespace calc {
namespace {

using Kind = Expression::Kind;
using Ptr = std::unique_ptr<Expression>;

/// The parser and the compiler need stack for each level.
constexpr unsigned k_max_depth = 400;

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

  std::vector<Item> items() {
    std::vector<Item> found;
    while (now().kind != Token::Kind::end) {
      if (is(";")) {
        ++next_;
        continue;
      }
      found.push_back(item());
      if (now().kind != Token::Kind::end) expect(";");
    }
    return found;
  }

 private:
  const Token& now() const { return tokens_[next_]; }
  bool is(std::string_view text) const {
    return (now().kind == Token::Kind::sign || now().kind == Token::Kind::keyword) && now().text == text;
  }
  bool skip(std::string_view text) {
    const bool there = is(text);
    if (there) ++next_;
    return there;
  }
  [[noreturn]] void fail_expecting(const std::string& what) const {
    const bool ended = now().kind == Token::Kind::end;
    throw SyntaxError(now().at, what + " expected, not " + (ended ? "the end" : "'" + std::string(now().text) + "'"));
  }
  void expect(std::string_view text) {
    if (!skip(text)) fail_expecting("'" + std::string(text) + "'");
  }
  std::string name() {
    if (now().kind != Token::Kind::name) fail_expecting("a name");
    return std::string(tokens_[next_++].text);
  }

  Item item() {
    Item item{now().at, {}, {}, nullptr};
    if (skip("def")) {
      item.at = now().at;
      item.function = name();
      expect("(");
      if (!is(")")) {
        do item.parameters.push_back(name());
        while (skip(","));
      }
      expect(")");
    }
    item.body = expression();
    return item;
  }

  Ptr make(Kind kind, Position at) const {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->at = at;
    return made;
  }

  Ptr expression() {
    if (++depth_ > k_max_depth) throw SyntaxError(now().at, "nested too deeply");
    Ptr made = is("let") ? let() : is("if") ? if_then_else() : is("try") ? try_else() : operation(0);
    --depth_;
    return made;
  }

  Ptr let() {
    Ptr made = make(Kind::let, tokens_[next_++].at);
    made->name = name();
    expect("=");
    made->operands.push_back(expression());
    expect("in");
    made->operands.push_back(expression());
    return made;
  }
  Ptr if_then_else() {
    Ptr made = make(Kind::if_then_else, tokens_[next_++].at);
    made->operands.push_back(expression());
    expect("then");
    made->operands.push_back(expression());
    expect("else");
    made->operands.push_back(expression());
    return made;
  }
  Ptr try_else() {
    Ptr made = make(Kind::try_else, tokens_[next_++].at);
    made->operands.push_back(expression());
    expect("else");
    made->operands.push_back(expression());
    return made;
  }

  bool is_operator(std::size_t level) const {
    static constexpr std::array<std::array<std::string_view, 3>, 3> levels{
        {{"<", ">", "=="}, {"+", "-", ""}, {"*", "/", ""}}};
    for (const std::string_view sign : levels[level])
      if (is(sign)) return true;
    return false;
  }
  /// Operators of equal rank group from left to right; a chain of them nests as deeply as it is long.
  Ptr operation(std::size_t level) {
    if (level == 3) return unary();
    Ptr left = operation(level + 1);
    for (unsigned length = 0; is_operator(level); ++length) {
      if (length == k_max_depth) throw SyntaxError(now().at, "too many operators in a row");
      Ptr made = make(Kind::operation, now().at);
      made->name = tokens_[next_++].text;
      made->operands.push_back(std::move(left));
      made->operands.push_back(operation(level + 1));
      left = std::move(made);
    }
    return left;
  }
  Ptr unary() {
    if (!is("-")) return primary();
    if (++depth_ > k_max_depth) throw SyntaxError(now().at, "nested too deeply");
    Ptr made = make(Kind::negate, tokens_[next_++].at);
    made->operands.push_back(unary());
    --depth_;
    return made;
  }

  Ptr primary() {
    const Token token = now();
    if (token.kind == Token::Kind::number) {
      ++next_;
      Ptr made = make(Kind::number, token.at);
      made->number = token.number;
      return made;
    }
    if (skip("(")) {
      Ptr made = expression();
      expect(")");
      return made;
    }
    if (token.kind != Token::Kind::name) fail_expecting("an expression");
    ++next_;
    Ptr made = make(is("(") ? Kind::call : Kind::name, token.at);
    made->name = token.text;
    if (skip("(") && !skip(")")) {
      do made->operands.push_back(expression());
      while (skip(","));
      expect(")");
    }
    return made;
  }

  const std::vector<Token> tokens_;
  std::size_t next_ = 0;
  unsigned depth_ = 0;
};

}  // namespace

std::vector<Item> parse(std::string_view text) { return Parser(text).items(); }

}  // namespace calc

#include "tests/toy_vm/random_script.h"

#include <array>
#include <limits>
#include <random>
#include <string_view>

namespace toy_test {
namespace {

using Kind = Node::Kind;

constexpr std::array<std::string_view, 11> k_operators{"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!="};

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  RandomScript script() {
    for (std::size_t i = 0, count = 2 + below(3); i < count; ++i) {
      variables_ = {"p"};
      functions_.push_back({"f" + std::to_string(i), block(0)});
    }
    return std::move(functions_);
  }

 private:
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
  template <class List>
  auto any(const List& list) {
    return list[below(list.size())];
  }

  Node block(int depth) {
    const std::vector<std::string> outside = variables_;
    Node made{Kind::block};
    for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) made.children.push_back(statement(depth + 1));
    variables_ = outside;
    return made;
  }

  Node statement(int depth) {
    const std::size_t die = depth > 5 ? below(58) : below(100);
    if (die < 12) return let();
    if (die < 22) return {Kind::assign, any(variables_), 0, {expression(0)}};
    if (die < 34) return {Kind::expression, {}, 0, {{Kind::native, "print", 0, {expression(0)}}}};
    if (die < 40) return {Kind::expression, {}, 0, {expression(0)}};
    if (die < 43) return {Kind::throws, {}, 0, {expression(1)}};
    if (die < 45) return {Kind::returns, {}, 0, {expression(1)}};
    if (die < 48) return loops_ > 0 ? Node{chance(50) ? Kind::breaks : Kind::continues} : let();
    if (die < 58) return {Kind::expression, {}, 0, {call(0)}};
    if (die < 67) return {Kind::if_else, {}, 0, {expression(1), block(depth), block(depth)}};
    if (die < 78) return loop(depth);
    return try_all(depth);
  }

  Node let() {
    Node made{Kind::let, fresh("v"), 0, {expression(0)}};
    variables_.push_back(made.text);
    return made;
  }

  Node loop(int depth) {
    ++loops_;
    Node made{Kind::loop, fresh("c"), static_cast<std::int64_t>(1 + below(3)), {block(depth)}};
    --loops_;
    return made;
  }

  Node try_all(int depth) {
    Node made{Kind::try_all, fresh("e")};
    made.catches = chance(60);
    made.finishes = !made.catches || chance(60);
    made.children.push_back(block(depth));
    if (made.catches) {
      variables_.push_back(made.text);
      made.children.push_back(block(depth));
      variables_.pop_back();
    }
    if (made.finishes) made.children.push_back(block(depth));
    return made;
  }

  Node expression(int depth) {
    const std::size_t die = depth > 3 ? below(40) : below(100);
    if (die < 18) return {Kind::variable, any(variables_)};
    if (die < 38) return number();
    if (die < 40) return {Kind::text, any(std::array<const char*, 4>{"", "a", "b", "17"})};
    if (die < 70)
      return {Kind::arithmetic, std::string(any(k_operators)), 0, {expression(depth + 1), expression(depth + 1)}};
    if (die < 76) return {Kind::logical, chance(50) ? "and" : "or", 0, {expression(depth + 1), expression(depth + 1)}};
    if (die < 79) return {Kind::negation, {}, 0, {expression(depth + 1)}};
    return call(depth);
  }

  Node number() {
    using Limits = std::numeric_limits<std::int64_t>;
    if (chance(90)) return {Kind::number, {}, static_cast<std::int64_t>(below(6)) - 1};
    return {Kind::number, {}, any(std::array{Limits::max(), Limits::min(), std::int64_t{1} << 32})};
  }

  Node call(int depth) {
    if (chance(6)) return {Kind::native, "fail", 0, {expression(depth + 1)}};
    if (chance(3)) return {Kind::native, "odd"};
    if (functions_.empty()) return number();
    const std::string callee = functions_[below(functions_.size())].name;
    if (chance(40)) return {Kind::call, callee, 0, {expression(depth + 1)}};
    const Node function{Kind::variable, callee};
    if (chance(15))
      return {Kind::native, "each", 0, {{Kind::number, {}, static_cast<std::int64_t>(below(3))}, function}};
    const std::array names{"apply", "guarded", "attempt", "catch_odd", "rethrow"};
    return {Kind::native, any(names), 0, {function, expression(depth + 1)}};
  }

  std::mt19937_64 random_;
  RandomScript functions_;
  std::vector<std::string> variables_;
  std::size_t names_ = 0;
  int loops_ = 0;
};

std::string print(const Node& node);

std::string list(const std::vector<Node>& nodes, std::string_view between) {
  std::string text;
  for (const Node& node : nodes) text += (text.empty() ? "" : std::string(between)) + print(node);
  return text;
}

std::string print_try(const Node& node) {
  std::string text = "try " + print(node.children[0]);
  if (node.catches) text += "catch " + node.text + " " + print(node.children[1]);
  if (node.finishes) text += "finally " + print(node.children.back());
  return text;
}

std::string print(const Node& node) {
  const auto child = [&](std::size_t i) { return print(node.children[i]); };
  switch (node.kind) {
    case Kind::number:
      if (node.number == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807 - 1)";
      return node.number < 0 ? "(" + std::to_string(node.number) + ")" : std::to_string(node.number);
    case Kind::text:
      return '"' + node.text + '"';
    case Kind::variable:
      return node.text;
    case Kind::arithmetic:
    case Kind::logical:
      return "(" + list(node.children, " " + node.text + " ") + ")";
    case Kind::negation:
      return "(not " + child(0) + ")";
    case Kind::call:
    case Kind::native:
      return node.text + "(" + list(node.children, ", ") + ")";
    case Kind::block:
      return "{\n" + list(node.children, "") + "}\n";
    case Kind::let:
      return "let " + node.text + " = " + child(0) + ";\n";
    case Kind::assign:
      return node.text + " = " + child(0) + ";\n";
    case Kind::expression:
      return child(0) + ";\n";
    case Kind::if_else:
      return "if " + child(0) + " " + child(1) + "else " + child(2);
    case Kind::loop:
      return "let " + node.text + " = 0;\nwhile " + node.text + " < " + std::to_string(node.number) + " {\n" +
             node.text + " = " + node.text + " + 1;\ntick();\n" + list(node.children[0].children, "") + "}\n";
    case Kind::try_all:
      return print_try(node);
    case Kind::throws:
      return "throw " + child(0) + ";\n";
    case Kind::returns:
      return "return " + child(0) + ";\n";
    case Kind::breaks:
      return "break;\n";
    case Kind::continues:
      return "continue;\n";
  }
  return "";
}

}  // namespace

RandomScript random_script(std::uint64_t seed) { return Author(seed).script(); }

std::string printed(const RandomScript& script) {
  std::string text;
  for (const ScriptFunction& function : script)
    text += "fn " + function.name + "(p) {\ntick();\n" + list(function.body.children, "") + "}\n";
  return text + "fn main() { return " + script.back().name + "(3); }\n";
}

}  // namespace toy_test

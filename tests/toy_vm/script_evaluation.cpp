// Evaluates the tree of a random script: the outcome of every statement is a value here, exceptions included.
#include <functional>
#include <map>

#include "tests/toy_vm/random_script.h"

namespace toy_test {
namespace {

using Kind = Node::Kind;

struct Datum {
  enum class Type : std::uint8_t { number, text, error };
  Type type = Type::number;
  std::int64_t number = 0;  // of an error: no two are equal
  std::string text{};
};

/// How an expression or a statement ended.
struct Outcome {
  enum class Way : std::uint8_t { normal, returned, broken, continued, thrown, odd };  ///< odd: no std::exception
  Way way = Way::normal;
  Datum datum{};

  bool ended() const { return way != Way::normal; }
};

using Way = Outcome::Way;
using Type = Datum::Type;

Datum number(std::int64_t value) { return {Type::number, value}; }
Outcome script_error(const std::string& text) { return {Way::thrown, {Type::text, 0, text}}; }
std::string shown(const Datum& d) { return d.type == Type::number ? std::to_string(d.number) : d.text; }
bool truth(const Datum& d) { return d.type != Type::number || d.number != 0; }
const char* named(Type type) { return type == Type::number ? "a number" : type == Type::text ? "a text" : "an error"; }

std::int64_t low_bits(__int128 value) { return static_cast<std::int64_t>(static_cast<unsigned __int128>(value)); }

Outcome compute_numbers(const std::string& op, __int128 a, __int128 b) {
  if (op == "+") return {Way::normal, number(low_bits(a + b))};
  if (op == "-") return {Way::normal, number(low_bits(a - b))};
  if (op == "*") return {Way::normal, number(low_bits(a * b))};
  if (b == 0) return script_error("division by zero");
  return {Way::normal, number(low_bits(op == "/" ? a / b : a % b))};
}

bool holds(const std::string& op, int order) {
  return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

Outcome compute(const std::string& op, const Datum& a, const Datum& b) {
  const bool equal = a.type == b.type && a.number == b.number && a.text == b.text;
  if (op == "==") return {Way::normal, number(equal)};
  if (op == "!=") return {Way::normal, number(!equal)};
  const bool compares = op[0] == '<' || op[0] == '>';
  const bool numbers = a.type == Type::number && b.type == Type::number;
  const bool texts = a.type == Type::text && b.type == Type::text;
  if (numbers && !compares) return compute_numbers(op, a.number, b.number);
  if (numbers) return {Way::normal, number(holds(op, a.number < b.number ? -1 : a.number > b.number))};
  if (texts && compares) return {Way::normal, number(holds(op, a.text.compare(b.text)))};
  if (op == "+" && (a.type == Type::text || b.type == Type::text)) {
    if (shown(a).size() + shown(b).size() > 1 << 20) return script_error("text too long");
    return {Way::normal, {Type::text, 0, shown(a) + shown(b)}};
  }
  const std::map<std::string, std::string> verbs{{"+", "add"}, {"-", "subtract"}, {"*", "multiply"}};
  const auto verb = verbs.find(op);
  const std::string does = verb != verbs.end() ? verb->second : compares ? "compare" : "divide";
  return script_error("cannot " + does + " " + named(a.type) + " and " + named(b.type));
}

class Evaluation {
 public:
  explicit Evaluation(const RandomScript& script) : script_(script) {}

  std::string run() {
    const Outcome outcome = call(script_.back().name, number(3));
    switch (outcome.way) {
      case Way::thrown:
        return out_ + "uncaught: " + shown(outcome.datum) + "\n";
      case Way::odd:
        return out_ + "odd\n";
      default:
        return out_ + "returned: " + shown(outcome.datum) + "\n";
    }
  }

 private:
  using Variables = std::map<std::string, Datum>;

  Outcome tick() { return ++ticks_ > k_ticks ? script_error("out of time") : Outcome{}; }

  Outcome call(const std::string& name, const Datum& argument) {
    if (const Outcome late = tick(); late.ended()) return late;
    for (const ScriptFunction& function : script_) {
      if (function.name != name) continue;
      Variables variables{{"p", argument}};
      Outcome outcome = execute(function.body, variables);
      if (outcome.way == Way::normal) outcome.datum = number(0);
      if (outcome.way == Way::returned) outcome.way = Way::normal;
      return outcome;
    }
    return script_error("no such function");
  }

  // Expressions.

  Outcome evaluate(const Node& node, Variables& variables) {
    switch (node.kind) {
      case Kind::number:
        return {Way::normal, number(node.number)};
      case Kind::text:
        return {Way::normal, {Type::text, 0, node.text}};
      case Kind::variable:
        return {Way::normal, variables.at(node.text)};
      case Kind::native:
        return native(node, variables);
      default:
        break;
    }
    const Outcome first = evaluate(node.children[0], variables);
    if (first.ended()) return first;
    if (node.kind == Kind::negation) return {Way::normal, number(!truth(first.datum))};
    if (node.kind == Kind::call) return call(node.text, first.datum);
    if (node.kind == Kind::logical && truth(first.datum) == (node.text == "or"))
      return {Way::normal, number(node.text == "or")};
    const Outcome second = evaluate(node.children[1], variables);
    if (second.ended()) return second;
    if (node.kind == Kind::logical) return {Way::normal, number(truth(second.datum))};
    return compute(node.text, first.datum, second.datum);
  }

  Outcome native(const Node& node, Variables& variables) {
    if (node.text == "odd") return {Way::odd};
    if (node.text == "each") {
      for (std::int64_t i = 0; i < node.children[0].number; ++i)
        if (const Outcome one = call(node.children[1].text, number(i)); one.ended()) return one;
      return {};
    }
    const Outcome argument = evaluate(node.children.back(), variables);
    if (argument.ended()) return argument;
    if (node.text == "print") return out_ += shown(argument.datum) + "\n", Outcome{};
    if (node.text == "fail") return {Way::thrown, {Type::error, 0, shown(argument.datum)}};
    return native_call(node.text, node.children[0].text, argument.datum);
  }

  /// Calls through a native that calls the script.
  Outcome native_call(const std::string& native, const std::string& function, const Datum& argument) {
    if (native == "guarded") out_ += "enter\n";
    const Outcome outcome = call(function, argument);
    if (native == "guarded") out_ += "leave\n";
    if (native == "rethrow" && outcome.ended()) out_ += "rethrown\n";
    const bool by_script = outcome.way == Way::thrown && outcome.datum.type != Type::error;
    if (native == "attempt" && by_script) return {Way::normal, outcome.datum};
    if (native == "catch_odd" && outcome.way == Way::odd) return {Way::normal, number(5)};
    return outcome;
  }

  // Statements.

  Outcome execute(const Node& node, Variables& variables) {
    switch (node.kind) {
      case Kind::block:
        for (const Node& each : node.children)
          if (const Outcome outcome = execute(each, variables); outcome.ended()) return outcome;
        return {};
      case Kind::loop:
        return loop(node, variables);
      case Kind::try_all:
        return try_all(node, variables);
      case Kind::breaks:
        return {Way::broken};
      case Kind::continues:
        return {Way::continued};
      default:
        break;
    }
    const Outcome value = evaluate(node.children[0], variables);
    if (value.ended()) return value;
    switch (node.kind) {
      case Kind::let:
      case Kind::assign:
        variables[node.text] = value.datum;
        return {};
      case Kind::if_else:
        return execute(node.children[truth(value.datum) ? 1 : 2], variables);
      case Kind::throws:
        return {Way::thrown, value.datum};
      case Kind::returns:
        return {Way::returned, value.datum};
      default:
        return {};
    }
  }

  Outcome loop(const Node& node, Variables& variables) {
    for (std::int64_t i = 0; i < node.number; ++i) {
      if (const Outcome late = tick(); late.ended()) return late;
      const Outcome outcome = execute(node.children[0], variables);
      if (outcome.way == Way::broken) break;
      if (outcome.ended() && outcome.way != Way::continued) return outcome;
    }
    return {};
  }

  Outcome try_all(const Node& node, Variables& variables) {
    Outcome outcome = execute(node.children[0], variables);
    if (node.catches && outcome.way == Way::thrown) {
      if (outcome.datum.type == Type::error) outcome.datum.number = ++errors_;
      variables[node.text] = outcome.datum;
      outcome = execute(node.children[1], variables);
    }
    if (!node.finishes) return outcome;
    const Outcome last = execute(node.children.back(), variables);
    return last.ended() ? last : outcome;
  }

  const RandomScript& script_;
  std::string out_;
  int ticks_ = 0;
  std::int64_t errors_ = 0;
};

}  // namespace

std::string evaluated(const RandomScript& script) { return Evaluation(script).run(); }

}  // namespace toy_test

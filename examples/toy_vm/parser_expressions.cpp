// Expressions: each leaves its value on the stack.
#include <algorithm>
#include <array>

#include "examples/toy_vm/parser_p.h"

namespace toy {
namespace {

struct Operator {
  std::string_view sign;
  int binding;
  Op op;
};

constexpr int k_or = 1, k_and = 2, k_not = 3, k_minus = 7;
constexpr std::array<Operator, 13> k_operators{{
    {"or", k_or, Op::jump_if_zero},
    {"and", k_and, Op::jump_if_zero},
    {"<", 4, Op::less},
    {"<=", 4, Op::less_equal},
    {">", 4, Op::greater},
    {">=", 4, Op::greater_equal},
    {"==", 4, Op::equal},
    {"!=", 4, Op::not_equal},
    {"+", 5, Op::add},
    {"-", 5, Op::subtract},
    {"*", 6, Op::multiply},
    {"/", 6, Op::divide},
    {"%", 6, Op::remainder},
}};

const Operator* find_operator(const Token& token) {
  const auto* found = std::ranges::find_if(k_operators, [&](const Operator& o) { return token.is(o.sign); });
  return found == k_operators.end() ? nullptr : found;
}

}  // namespace

void Parser::emit(Op op, std::int64_t operand) {
  writer_->set_line(tokens_[next_ > 0 ? next_ - 1 : 0].line);
  writer_->emit(op, operand);
}

/// The expression ends before the first operator that does not bind more than `binding`.
void Parser::expression(int binding) {
  const Nesting nesting(*this);
  operand();
  for (const Operator* next = find_operator(token()); next && next->binding > binding; next = find_operator(token())) {
    take();
    if (next->op == Op::jump_if_zero) {
      either(next->binding == k_or ? 1 : 0, next->binding);
    } else {
      expression(next->binding);
      emit(next->op);
    }
  }
}

/// "and", "or": 1 or 0. The right side counts only if the left one did not decide.
void Parser::either(std::int64_t decision, int binding) {
  FunctionWriter::Jumps decided, end;
  if (decision == 1) emit(Op::negate_truth);
  writer_->jump(Op::jump_if_zero, decided);
  expression(binding);
  emit(Op::negate_truth);
  emit(Op::negate_truth);
  writer_->jump(Op::jump, end);
  writer_->release_to(writer_->depth() - 1);
  writer_->bind(decided);
  emit(Op::number, decision);
  writer_->bind(end);
}

void Parser::operand() {
  const Token& first = token();
  switch (first.kind) {
    case Token::Kind::number:
      take();
      return emit(Op::number, first.number);
    case Token::Kind::text:
      take();
      program_.texts.push_back(first.spelling);
      return emit(Op::text, static_cast<std::int64_t>(program_.texts.size()) - 1);
    case Token::Kind::name:
      return name_or_call();
    default:
      break;
  }
  if (accept("(")) {
    expression();
    return expect(")");
  }
  if (accept("not")) {
    expression(k_not);
    return emit(Op::negate_truth);
  }
  if (accept("-")) {
    emit(Op::number, 0);
    expression(k_minus);
    return emit(Op::subtract);
  }
  fail_expecting("an expression");
}

void Parser::name_or_call() {
  const bool called = token(1).is("(");
  const std::string name = token().spelling;
  const std::uint32_t* const slot = find_local(name);
  const auto function = functions_.find(name);
  if (slot && !called) return take(), emit(Op::load, *slot);
  if (function == functions_.end())
    fail(!called ? "unknown name '" + name + "'"
         : slot  ? "'" + name + "' is no function: call what it holds with apply()"
                 : "unknown function '" + name + "'");
  take();
  const auto number = static_cast<std::int64_t>(function->second);
  if (!called) return emit(Op::function, number);

  take();
  const std::uint32_t line = token().line;
  std::uint32_t given = 0;
  for (; !token().is(")"); ++given) {
    if (given > 0) expect(",");
    expression();
  }
  const std::uint32_t arity = program_.functions[function->second].arity;
  if (given != arity)
    fail("'" + name + "' takes " + std::to_string(arity) + (arity == 1 ? " argument" : " arguments") + ", not " +
         std::to_string(given));
  take();
  writer_->set_line(line);
  writer_->emit_call(number, arity);
}

}  // namespace toy

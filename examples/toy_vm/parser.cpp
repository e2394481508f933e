#include "examples/toy_vm/parser.h"

#include <algorithm>

#include "examples/toy_vm/parser_p.h"

namespace toy {
namespace {

constexpr std::uint32_t k_most_slots = 1000;

}  // namespace

Program parse(std::string_view script, std::span<const NativeName> natives) {
  return Parser(script, natives).program();
}

Parser::Parser(std::string_view script, std::span<const NativeName> natives)
    : tokens_(tokens_of(script)), natives_(natives.size()) {
  for (const NativeName& native : natives) {
    functions_.emplace(native.name, program_.functions.size());
    program_.functions.push_back({.name = std::string(native.name), .arity = native.arity});
  }
}

Program Parser::program() {
  declare_functions();
  while (token().kind != Token::Kind::end) function();
  const auto main = functions_.find("main");
  if (main == functions_.end()) fail("no function 'main'");
  program_.main = main->second;
  return std::move(program_);
}

/// Functions may be called before they are defined: names and parameter counts are read first. Errors are reported
/// later.
void Parser::declare_functions() {
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token& name = tokens_[i + 1];
    if (!tokens_[i].is("fn") || name.kind != Token::Kind::name) continue;
    if (!functions_.emplace(name.spelling, program_.functions.size()).second) continue;
    FunctionCode function{.name = name.spelling};
    for (std::size_t at = i + 2; !tokens_[at].is(")") && !tokens_[at].is("{") && at + 1 < tokens_.size(); ++at)
      function.arity += tokens_[at].kind == Token::Kind::name;
    program_.functions.push_back(std::move(function));
  }
}

void Parser::function() {
  if (!accept("fn")) fail_expecting("'fn'");
  const std::uint32_t line = token().line;
  const std::string name = name_of("name of a function");
  const std::size_t number = functions_.at(name);
  FunctionCode& function = program_.functions[number];
  if (number < natives_) fail("function '" + name + "' is there already, in C++");
  if (function.line != 0) fail("function '" + name + "' is defined twice");
  function.line = line;

  FunctionWriter writer(function);
  writer_ = &writer;
  expect("(");
  while (!token().is(")")) {
    if (!locals_.empty()) expect(",");
    const std::string parameter = name_of("name of a parameter");
    declare_local(parameter, writer.reserve(1));
  }
  expect(")");
  block();
  emit(Op::number, 0);
  emit(Op::return_value);
  if (function.slots > k_most_slots) throw SyntaxError(line, "function '" + name + "' needs too many values at a time");
  locals_.clear();
  writer_ = nullptr;
}

const Token& Parser::take() {
  const Token& taken = token();
  if (next_ + 1 < tokens_.size()) ++next_;
  return taken;
}

bool Parser::accept(std::string_view word) {
  const bool found = token().is(word);
  if (found) take();
  return found;
}

void Parser::expect(std::string_view word) {
  if (!accept(word)) fail_expecting("'" + std::string(word) + "'");
}

std::string Parser::name_of(std::string_view what) {
  if (token().kind != Token::Kind::name) fail_expecting(what);
  return take().spelling;
}

void Parser::fail(const std::string& text) const { throw SyntaxError(token().line, text); }

void Parser::fail_expecting(std::string_view what) const {
  fail("expected " + std::string(what) + ", not " + token().shown());
}

void Parser::declare_local(const std::string& name, std::uint32_t slot) {
  const auto same = [&](const Local& local) { return local.name == name && local.scope == scope_; };
  if (std::ranges::any_of(locals_, same)) fail("'" + name + "' is declared twice");
  locals_.push_back({name, slot, scope_});
}

const std::uint32_t* Parser::find_local(std::string_view name) const {
  const auto found = std::find_if(locals_.rbegin(), locals_.rend(), [&](const Local& l) { return l.name == name; });
  return found == locals_.rend() ? nullptr : &found->slot;
}

}  // namespace toy

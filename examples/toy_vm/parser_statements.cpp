// Statements: a statement leaves the local variables on the stack that it declares.
#include "examples/toy_vm/parser_p.h"

namespace toy {

/// Variables that are declared in a block end with it; their slots are reused.
void Parser::block() {
  const std::uint32_t depth = writer_->depth();
  const std::size_t locals = locals_.size();
  ++scope_;
  expect("{");
  while (!accept("}")) statement();
  --scope_;
  locals_.resize(locals);
  writer_->release_to(depth);
}

void Parser::statement() {
  const Nesting nesting(*this);
  if (token().kind == Token::Kind::name && token(1).is("=")) return assignment();
  if (accept("let")) return let_statement();
  if (accept("if")) return if_statement();
  if (accept("while")) return while_statement();
  if (accept("try")) return try_statement();
  if (accept("return")) return return_statement();
  if (accept("break")) return jump_statement(Way::breaks);
  if (accept("continue")) return jump_statement(Way::continues);
  if (accept("throw")) {
    expression();
    emit(Op::throw_value);
    return expect(";");
  }
  const std::uint32_t depth = writer_->depth();
  expression();
  writer_->release_to(depth);
  expect(";");
}

void Parser::let_statement() {
  const std::string name = name_of("name of a variable");
  expect("=");
  const std::uint32_t slot = writer_->depth();
  expression();
  declare_local(name, slot);
  expect(";");
}

void Parser::assignment() {
  const std::uint32_t* const slot = find_local(token().spelling);
  if (!slot) fail("unknown variable '" + token().spelling + "'");
  const std::uint32_t into = *slot;
  take();
  take();
  expression();
  emit(Op::store, into);
  expect(";");
}

void Parser::if_statement() {
  FunctionWriter::Jumps otherwise, end;
  expression();
  writer_->jump(Op::jump_if_zero, otherwise);
  block();
  if (!accept("else")) return writer_->bind(otherwise);
  writer_->jump(Op::jump, end);
  writer_->bind(otherwise);
  if (accept("if")) {
    const Nesting nesting(*this);
    if_statement();
  } else {
    block();
  }
  writer_->bind(end);
}

void Parser::while_statement() {
  surroundings_.push_back({.kind = Surrounding::Kind::loop, .top = writer_->here()});
  FunctionWriter::Jumps end;
  expression();
  writer_->jump(Op::jump_if_zero, end);
  block();
  emit(Op::jump, surroundings_.back().top);
  writer_->bind(end);
  writer_->bind(surroundings_.back().ends);
  surroundings_.pop_back();
}

void Parser::return_statement() {
  if (token().is(";"))
    emit(Op::number, 0);
  else
    expression();
  leave(Way::returns, 0);
  expect(";");
}

void Parser::jump_statement(Way way) {
  std::size_t loop = surroundings_.size();
  while (loop > 0 && surroundings_[loop - 1].kind != Surrounding::Kind::loop) --loop;
  if (loop == 0) fail(way == Way::breaks ? "'break' outside of a loop" : "'continue' outside of a loop");
  leave(way, loop - 1);
  expect(";");
}

}  // namespace toy

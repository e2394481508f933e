// try, catch, finally. The code of `finally` is written once; every way into it leaves the number of the way out:
//
//             the statements of try and catch; on exceptions, to K
//             way = 0, kept = none, to F                  the end was reached
//             ...
//             way = 2 and more, kept = none, to F         return, break, continue
//          K: kept = the exception, way = 1
//          F: the statements of finally; if they leave, the exception in kept is discarded
//             if way = 1: resume the exception in kept
//             if way = 2: return, break or continue, which may lead to the next finally outside
#include "examples/toy_vm/parser_p.h"

namespace toy {
namespace {

constexpr std::size_t k_end_reached = 0, k_thrown = 1, k_first_exit = 2;

}  // namespace

void Parser::try_statement() {
  const std::size_t catch_at = behind_block(next_);
  const bool catches = tokens_[catch_at].is("catch");
  const std::size_t finally_at = catches ? behind_block(std::min(catch_at + 2, tokens_.size() - 1)) : catch_at;
  const bool finishes = tokens_[finally_at].is("finally");
  if (!finishes) {
    if (!catches && tokens_[catch_at].kind != Token::Kind::end) fail("'try' without 'catch' or 'finally'");
    return catches ? catching_part() : block();
  }
  Surrounding guarded{.kind = Surrounding::Kind::guarded, .slots = writer_->depth()};
  emit(Op::number, 0);  // the result, which only `return` has
  writer_->reserve(2);
  guarded.handler = writer_->enter(Handler::Kind::finishes, guarded.kept_exception());
  surroundings_.push_back(guarded);
  catches ? catching_part() : block();
  run_finally(surroundings_.back(), k_end_reached);
  writer_->leave();
  finally_part();
  writer_->release_to(guarded.slots);
}

/// The block of try, and the handler of its exceptions.
void Parser::catching_part() {
  const std::uint32_t value = writer_->depth();
  const std::int32_t handler = writer_->enter(Handler::Kind::catches, value);
  block();
  writer_->leave();
  FunctionWriter::Jumps end;
  writer_->jump(Op::jump, end);

  expect("catch");
  writer_->begin(handler);
  writer_->reserve(1);
  ++scope_;
  declare_local(name_of("name for what is caught"), value);
  block();
  --scope_;
  locals_.pop_back();
  writer_->release_to(value);
  writer_->bind(end);
}

void Parser::finally_part() {
  Surrounding guarded = surroundings_.back();
  surroundings_.back().kind = Surrounding::Kind::finishing;
  expect("finally");
  writer_->begin(guarded.handler);
  emit(Op::number, k_thrown);
  emit(Op::store, guarded.exit_number());
  writer_->bind(guarded.ends);
  writer_->enter(Handler::Kind::discards, guarded.kept_exception());
  block();
  writer_->leave();
  surroundings_.pop_back();

  const auto on_way = [&](std::size_t number, auto go_on) {
    FunctionWriter::Jumps other;
    emit(Op::load, guarded.exit_number());
    emit(Op::number, static_cast<std::int64_t>(number));
    emit(Op::equal);
    writer_->jump(Op::jump_if_zero, other);
    go_on();
    writer_->bind(other);
  };
  if (writer_->handler(guarded.handler).used) on_way(k_thrown, [&] { emit(Op::resume, guarded.handler); });
  for (std::size_t i = 0; i < guarded.exits.size(); ++i)
    on_way(k_first_exit + i, [&] {
      if (guarded.exits[i].way == Way::returns) emit(Op::load, guarded.result());
      leave(guarded.exits[i].way, guarded.exits[i].to);
    });
}

/// The token after the block that begins at token `open`; the last token if it does not end.
std::size_t Parser::behind_block(std::size_t open) const {
  std::size_t depth = 0, at = open;
  for (; at + 1 < tokens_.size(); ++at) {
    if (tokens_[at].is("{")) ++depth;
    if (tokens_[at].is("}") && --depth == 0) return at + 1;
    if (depth == 0) break;
  }
  return tokens_.size() - 1;
}

/// Leaves outwards to surrounding number `to`, a loop; or returns the value that was pushed last.
void Parser::leave(Way way, std::size_t to) {
  const std::size_t last = way == Way::returns ? 0 : to + 1;
  for (std::size_t i = surroundings_.size(); i > last; --i) {
    Surrounding& passed = surroundings_[i - 1];
    if (passed.kind == Surrounding::Kind::finishing) emit(Op::discard, passed.handler);
    if (passed.kind != Surrounding::Kind::guarded) continue;
    if (way == Way::returns) emit(Op::store, passed.result());
    const Surrounding::Exit exit{way, to};
    auto known = std::find(passed.exits.begin(), passed.exits.end(), exit);
    if (known == passed.exits.end()) known = passed.exits.insert(known, exit);
    return run_finally(passed, k_first_exit + static_cast<std::size_t>(known - passed.exits.begin()));
  }
  if (way == Way::returns) return emit(Op::return_value);
  Surrounding& loop = surroundings_[to];
  if (way == Way::breaks) return writer_->jump(Op::jump, loop.ends);
  emit(Op::jump, loop.top);
}

void Parser::run_finally(Surrounding& guarded, std::size_t exit_number) {
  emit(Op::number, static_cast<std::int64_t>(exit_number));
  emit(Op::store, guarded.exit_number());
  emit(Op::number, 0);
  emit(Op::store, guarded.kept_exception());
  writer_->jump(Op::jump, guarded.ends);
}

}  // namespace toy

#include "examples/toy_vm/function_writer.h"

#include <algorithm>

namespace toy {
namespace {

constexpr bool may_throw(Op op) {
  return op == Op::call || op == Op::throw_value || (op >= Op::add && op <= Op::greater_equal);
}

constexpr bool ends_path(Op op) {
  return op == Op::jump || op == Op::throw_value || op == Op::return_value || op == Op::resume;
}

/// The change of the depth by an instruction other than a call.
constexpr int pushed_by(Op op) {
  if (op <= Op::load) return 1;
  const bool pops = (op >= Op::store && op <= Op::not_equal) || op == Op::jump_if_zero || op == Op::throw_value ||
                    op == Op::return_value;
  return pops ? -1 : 0;
}

}  // namespace

std::uint32_t FunctionWriter::reserve(std::uint32_t count) {
  const std::uint32_t first = depth_;
  depth_ += count;
  function_.slots = std::max(function_.slots, depth_);
  return first;
}

void FunctionWriter::emit(Op op, std::int64_t operand) {
  if (reachable_) {
    function_.code.push_back({op, handler_, depth_, line_, operand});
    if (may_throw(op)) may_throw_to(handler_);
    if (op == Op::resume) may_throw_to(at(static_cast<std::int32_t>(operand)).outer);
    if (ends_path(op)) reachable_ = false;
  }
  if (const int pushed = pushed_by(op); pushed > 0)
    reserve(1);
  else
    depth_ -= static_cast<std::uint32_t>(-pushed);
}

void FunctionWriter::emit_call(std::int64_t function, std::uint32_t arity) {
  emit(Op::call, function);
  depth_ -= arity;
  reserve(1);
}

void FunctionWriter::jump(Op op, Jumps& to) {
  if (reachable_) to.push_back(function_.code.size());
  emit(op);
}

void FunctionWriter::bind(const Jumps& jumps) {
  for (const std::size_t jump : jumps) function_.code[jump].operand = here();
  reachable_ = reachable_ || !jumps.empty();
}

std::int32_t FunctionWriter::enter(Handler::Kind kind, std::uint32_t slot) {
  function_.handlers.push_back({kind, handler_, slot});
  return handler_ = static_cast<std::int32_t>(function_.handlers.size()) - 1;
}

void FunctionWriter::leave() { handler_ = at(handler_).outer; }

void FunctionWriter::begin(std::int32_t handler) {
  at(handler).target = here();
  reachable_ = at(handler).used;
}

/// Exceptions that `catches` does not catch, and those that replace a discarded one, continue outwards. The one that
/// `finishes` keeps does so only if its code ever resumes it.
void FunctionWriter::may_throw_to(std::int32_t handler) {
  while (handler >= 0 && !at(handler).used) {
    at(handler).used = true;
    if (at(handler).kind == Handler::Kind::finishes) return;
    handler = at(handler).outer;
  }
}

}  // namespace toy

#include "tests/toy_vm/byte_code_rules.h"

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

namespace toy_test {
namespace {

using toy::FunctionCode;
using toy::Handler;
using toy::Instruction;
using toy::Op;

void check(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

bool is_index(std::int64_t number, std::size_t size) { return number >= 0 && static_cast<std::size_t>(number) < size; }

bool ends_path(Op op) { return op == Op::jump || op == Op::throw_value || op == Op::return_value || op == Op::resume; }

bool may_throw(Op op) { return (op >= Op::add && op <= Op::greater_equal) || op == Op::call || op == Op::throw_value; }

/// Follows every path through a function with the set of slots that were written.
class Paths {
 public:
  Paths(const toy::Program& program, const FunctionCode& function) : program_(program), function_(function) {}

  void follow() {
    check(!function_.code.empty() && function_.arity <= function_.slots, "code, and room for the arguments");
    for (std::size_t i = 0; i < function_.handlers.size(); ++i) check_handler(i);
    states_.resize(function_.code.size());
    Written arguments(function_.slots);
    for (std::size_t i = 0; i < function_.arity; ++i) arguments[i] = true;
    go_to(0, arguments);
    while (!work_.empty()) {
      at_ = *work_.begin();
      work_.erase(work_.begin());
      step(function_.code[at_], *states_[at_]);
    }
    for (const auto& state : states_) check(state.has_value(), "every instruction is on a path");
  }

  std::size_t at() const { return at_; }

 private:
  using Written = std::vector<bool>;

  void check_handler(std::size_t number) const {
    const Handler& handler = function_.handlers[number];
    check(handler.outer >= -1 && handler.outer < static_cast<std::int64_t>(number),
          "handlers are inside of older ones");
    check(is_index(handler.slot, function_.slots), "a handler's slot is in the frame");
  }
  const Handler& handler(std::int64_t number) const {
    check(is_index(number, function_.handlers.size()), "a handler exists");
    return function_.handlers[static_cast<std::size_t>(number)];
  }

  void go_to(std::int64_t target, const Written& written) {
    check(is_index(target, states_.size()), "control stays in the function");
    auto& known = states_[static_cast<std::size_t>(target)];
    bool changed = !known;
    if (!known) known = written;
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (!(*known)[i] || written[i]) continue;
      (*known)[i] = false;
      changed = true;
    }
    if (changed) work_.insert(static_cast<std::size_t>(target));
  }

  void throw_to(std::int64_t number, Written written) {
    while (number >= 0) {
      const Handler& next = handler(number);
      check(next.used, "who is thrown to is used");
      if (next.kind == Handler::Kind::discards) {
        check(written[next.slot], "what is discarded was kept");
      } else {
        Written caught = written;
        caught[next.slot] = true;
        go_to(next.target, caught);
      }
      if (next.kind == Handler::Kind::finishes) return;
      number = next.outer;
    }
  }

  /// Returns how many values an instruction takes from the top.
  std::uint32_t taken(const Instruction& i) const {
    if (i.op == Op::call) {
      check(is_index(i.operand, program_.functions.size()), "a called function exists");
      return program_.functions[static_cast<std::size_t>(i.operand)].arity;
    }
    if (i.op >= Op::add && i.op <= Op::not_equal) return 2;
    return i.op == Op::store || i.op == Op::negate_truth || i.op == Op::jump_if_zero || i.op == Op::throw_value ||
           i.op == Op::return_value;
  }

  void check_operand(const Instruction& i, const Written& written) const {
    const auto slot = static_cast<std::size_t>(i.operand);
    if (i.op == Op::text) check(is_index(i.operand, program_.texts.size()), "a text exists");
    if (i.op == Op::function) check(is_index(i.operand, program_.functions.size()), "a function exists");
    if (i.op == Op::store) check(is_index(i.operand, function_.slots), "a variable is in the frame");
    if (i.op == Op::load) check(is_index(i.operand, function_.slots) && written[slot], "a variable was written");
    if (i.op == Op::resume || i.op == Op::discard) check(written[handler(i.operand).slot], "what is resumed was kept");
  }

  void step(const Instruction& i, Written written) {
    const std::uint32_t count = taken(i);
    check(count <= i.depth && i.depth <= function_.slots, "what it takes is in the frame");
    for (std::uint32_t slot = i.depth - count; slot < i.depth; ++slot)
      check(written[slot], "what it takes was written");
    check_operand(i, written);
    if (may_throw(i.op)) throw_to(i.handler, written);
    if (i.op == Op::resume) throw_to(handler(i.operand).outer, written);
    if (i.op == Op::store) written[static_cast<std::size_t>(i.operand)] = true;
    const bool pushes =
        i.op <= Op::load || i.op == Op::call || i.op == Op::negate_truth || (i.op >= Op::add && i.op <= Op::not_equal);
    if (pushes) {
      check(i.depth - count < function_.slots, "what it pushes is in the frame");
      written[i.depth - count] = true;
    }
    if (i.op == Op::jump || i.op == Op::jump_if_zero) go_to(i.operand, written);
    if (!ends_path(i.op)) go_to(static_cast<std::int64_t>(at_) + 1, written);
  }

  const toy::Program& program_;
  const FunctionCode& function_;
  std::vector<std::optional<Written>> states_;
  std::set<std::size_t> work_;
  std::size_t at_ = 0;
};

}  // namespace

std::string broken_rule(const toy::Program& program) {
  if (!is_index(static_cast<std::int64_t>(program.main), program.functions.size())) return "there is no main()";
  for (const FunctionCode& function : program.functions) {
    if (function.line == 0) continue;  // native
    Paths paths(program, function);
    try {
      paths.follow();
    } catch (const std::logic_error& rule) {
      return function.name + ", instruction " + std::to_string(paths.at()) + ": " + rule.what();
    }
  }
  return "";
}

}  // namespace toy_test

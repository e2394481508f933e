// Writes the byte code of one function: counts slots, resolves jumps, and leaves out unreachable code.
#pragma once

#include <cstdint>

#include "examples/toy_vm/bytecode.h"

namespace toy {

class FunctionWriter {
 public:
  /// Instructions that jump to one place, which is not known yet.
  using Jumps = std::vector<std::size_t>;

  explicit FunctionWriter(FunctionCode& function) : function_(function) {}

  void set_line(std::uint32_t line) { line_ = line; }

  std::uint32_t depth() const { return depth_; }
  /// Takes `count` slots for a variable or for values of the compiler's own; returns the first.
  std::uint32_t reserve(std::uint32_t count);
  /// The slots from `depth` on are free again.
  void release_to(std::uint32_t depth) { depth_ = depth; }

  void emit(Op op, std::int64_t operand = 0);
  void emit_call(std::int64_t function, std::uint32_t arity);

  void jump(Op op, Jumps& to);
  void bind(const Jumps& jumps);
  /// The target of jumps back.
  std::int64_t here() const { return static_cast<std::int64_t>(function_.code.size()); }

  /// The handlers that were entered and not yet left.
  std::int32_t enter(Handler::Kind kind, std::uint32_t slot);
  void leave();
  const Handler& handler(std::int32_t number) const { return function_.handlers[static_cast<std::size_t>(number)]; }
  /// The code of a handler that was left begins here, and only it leads here.
  void begin(std::int32_t handler);

 private:
  void may_throw_to(std::int32_t handler);
  Handler& at(std::int32_t number) { return function_.handlers[static_cast<std::size_t>(number)]; }

  FunctionCode& function_;
  std::uint32_t line_ = 0;
  std::uint32_t depth_ = 0;
  std::int32_t handler_ = -1;
  bool reachable_ = true;
};

}  // namespace toy

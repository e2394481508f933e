#include "examples/toy_vm/runtime.h"

#include <cxxabi.h>

#include "examples/toy_vm/machine.h"

namespace toy {
namespace {

std::uint64_t bits(Value value) { return static_cast<std::uint64_t>(value.number); }
Value wrapped(std::uint64_t bits) { return Value::of(static_cast<std::int64_t>(bits)); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::number:
      return "a number";
    case Kind::text:
      return "a text";
    case Kind::function:
      return "a function";
    case Kind::error:
      return "an error";
  }
  return "?";
}

const char* name_of(Op op) {
  switch (op) {
    case Op::add:
      return "add";
    case Op::subtract:
      return "subtract";
    case Op::multiply:
      return "multiply";
    case Op::divide:
    case Op::remainder:
      return "divide";
    default:
      return "compare";
  }
}

template <class Operand>
Value compare(const Operand& a, const Operand& b, Op op) {
  switch (op) {
    case Op::less:
      return Value::of(std::int64_t{a < b});
    case Op::less_equal:
      return Value::of(std::int64_t{a <= b});
    case Op::greater:
      return Value::of(std::int64_t{a > b});
    default:
      return Value::of(std::int64_t{a >= b});
  }
}

Value compute_numbers(Machine& machine, Value a, Value b, Op op) {
  switch (op) {
    case Op::add:
      return wrapped(bits(a) + bits(b));
    case Op::subtract:
      return wrapped(bits(a) - bits(b));
    case Op::multiply:
      return wrapped(bits(a) * bits(b));
    case Op::divide:
    case Op::remainder:
      if (b.number == 0) machine.fail("division by zero");
      if (b.number == -1) return op == Op::divide ? wrapped(0 - bits(a)) : Value::of(std::int64_t{0});
      return Value::of(op == Op::divide ? a.number / b.number : a.number % b.number);
    default:
      return compare(a.number, b.number, op);
  }
}

bool is_comparison(Op op) { return op >= Op::less && op <= Op::greater_equal; }

/// Between these two a caught C++ exception exists.
class Caught {
 public:
  explicit Caught(_Unwind_Exception* exception) : object_(abi::__cxa_begin_catch(exception)) {}
  ~Caught() { abi::__cxa_end_catch(); }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;
  /// The exception landed as one of these types: object_ points to that (Itanium C++ ABI: exception handling, 2.5.3).
  const std::exception& as_exception() const { return *static_cast<const std::exception*>(object_); }

 private:
  void* const object_;
};

}  // namespace

Value compute(Machine& machine, const Value* operands, Op op) {
  constexpr std::size_t longest_text = 1 << 20;
  const Value a = operands[0], b = operands[1];
  const bool texts = a.kind == Kind::text && b.kind == Kind::text;
  if (a.kind == Kind::number && b.kind == Kind::number) return compute_numbers(machine, a, b, op);
  if (texts && is_comparison(op)) return compare(*a.text, *b.text, op);
  if (op == Op::add && (a.kind == Kind::text || b.kind == Kind::text)) {
    const std::string sum = to_text(a) + to_text(b);
    if (sum.size() > longest_text) machine.fail("text too long");
    return machine.text(sum);
  }
  machine.fail(std::string("cannot ") + name_of(op) + " " + name_of(a.kind) + " and " + name_of(b.kind));
}

void throw_value(Machine&, const Value* value) {
  if (value->kind == Kind::error) std::rethrow_exception(value->error->exception);
  throw ScriptError(*value, to_text(*value));
}

void stack_overflow(Machine& machine) { machine.fail("stack overflow"); }

Value caught(Machine& machine, _Unwind_Exception* exception) {
  const Caught ended_with_this_scope(exception);
  return machine.error(ended_with_this_scope.as_exception());
}

void discard(_Unwind_Exception* exception) noexcept {
  if (exception != nullptr) const Caught ended_at_once(exception);
}

}  // namespace toy

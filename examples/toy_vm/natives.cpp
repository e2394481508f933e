// They throw like C++ functions, call back into scripts, have destructors and catch clauses, and know nothing of how
// exceptions pass the scripts' frames between them.
#include "examples/toy_vm/natives.h"

#include <array>
#include <stdexcept>
#include <string>

namespace toy::natives {

/// print(value)
static Value print(Machine& machine, const Value* arguments) {
  machine.out() << to_text(arguments[0]) << '\n';
  return {};
}

/// text(value): the text that print() shows of it; of an error, its message.
static Value text(Machine& machine, const Value* arguments) { return machine.text(to_text(arguments[0])); }

/// number(text): throws std::invalid_argument and std::out_of_range, as the C++ library does.
static Value number(Machine&, const Value* arguments) {
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  return Value::of(std::int64_t{std::stoll(to_text(arguments[0]))});
}

/// fail(message): a plain C++ exception.
static Value fail(Machine&, const Value* arguments) { throw std::runtime_error(to_text(arguments[0])); }

/// apply(function, value): function(value)
static Value apply(Machine& machine, const Value* arguments) { return machine.call(arguments[0], {&arguments[1], 1}); }

/// each(count, function): function(0), function(1), ...
static Value each(Machine& machine, const Value* arguments) {
  if (arguments[0].kind != Kind::number) throw std::invalid_argument("each: count is no number");
  for (std::int64_t i = 0; i < arguments[0].number; ++i) machine.call(arguments[1], std::array{Value::of(i)});
  return {};
}

/// scoped(name, function): function(), during the life of a C++ object that prints its start and end.
static Value scoped(Machine& machine, const Value* arguments) {
  struct Scope {
    Scope(std::ostream& to, std::string called) : out(to), name(std::move(called)) { out << "enter " << name << '\n'; }
    ~Scope() { out << "leave " << name << '\n'; }
    std::ostream& out;
    std::string name;
  };
  const Scope scope(machine.out(), to_text(arguments[0]));
  return machine.call(arguments[1], {});
}

/// attempt(function, otherwise): function(); if it throws a value of the script, otherwise(value).
static Value attempt(Machine& machine, const Value* arguments) {
  Value thrown;
  try {
    return machine.call(arguments[0], {});
  } catch (const ScriptError& error) {
    thrown = error.value();
  }
  return machine.call(arguments[1], {&thrown, 1});
}

}  // namespace toy::natives

namespace toy {

std::span<const Native> standard_natives() {
  static constexpr std::array natives{
      Native{"print", 1, &natives::print},   Native{"text", 1, &natives::text},
      Native{"number", 1, &natives::number}, Native{"fail", 1, &natives::fail},
      Native{"apply", 2, &natives::apply},   Native{"each", 2, &natives::each},
      Native{"scoped", 2, &natives::scoped}, Native{"attempt", 2, &natives::attempt},
  };
  return natives;
}

}  // namespace toy

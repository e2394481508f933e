#include "examples/toy_vm/machine.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace toy {
namespace {

/// The limit down to which scripts may use the stack below `here`. Exceptions ignore the depth of their throw, so that
/// a limit, unlike a counter, is right again wherever they land. The memory below is for natives and for throwing.
std::uintptr_t stack_limit_below(std::uintptr_t here) {
  constexpr std::uintptr_t most = 2 << 20;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return here - most / 16;
  void* lowest = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return here - std::min(most, (here - reinterpret_cast<std::uintptr_t>(lowest)) / 2);
}

}  // namespace

Machine::Machine(std::span<const Native> natives, std::ostream& out) : out_(out) {
  for (const Native& native : natives) {
    functions_.push_back({native.name, native.arity, native.code});
    native_names_.push_back({native.name, native.arity});
  }
  entry_ = reinterpret_cast<Entry>(generate_entry(*this).start);
}

void Machine::load(std::string_view script, std::string_view script_name) {
  const Program program = parse(script, native_names_);
  script_name_ = script_name;
  std::vector<Value> texts;
  for (const std::string& each : program.texts) texts.push_back(text(each));
  // All functions come first: the code of one holds the address of another.
  for (std::size_t i = functions_.size(); i < program.functions.size(); ++i)
    functions_.push_back({program.functions[i].name, program.functions[i].arity, nullptr});
  for (std::size_t i = native_names_.size(); i < program.functions.size(); ++i) {
    GeneratedCode made = generate(*this, program.functions[i], texts);
    const auto begin = reinterpret_cast<std::uintptr_t>(made.start);
    functions_[i].code = reinterpret_cast<Code>(made.start);
    compiled_.push_back({begin, begin + made.size, std::move(made.lines)});
  }
  main_ = &functions_[program.main];
}

Value Machine::run(std::span<const Value> arguments) {
  check_arity(*main_, arguments);
  stack_limit_ = stack_limit_below(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  uncaught_.clear();
  return entry_(*this, arguments.data(), main_->code);
}

/// The search for a handler continues with memory or without.
void Machine::see_uncaught() noexcept {
  try {
    uncaught_ = trace_of_throw(*this);
  } catch (const std::bad_alloc&) {
    uncaught_.clear();
  }
}

void Machine::check_arity(const Function& function, std::span<const Value> arguments) {
  if (arguments.size() == function.arity) return;
  fail("'" + function.name + "' takes " + std::to_string(function.arity) +
       (function.arity == 1 ? " argument" : " arguments") + ", not " + std::to_string(arguments.size()));
}

Value Machine::call(Value function, std::span<const Value> arguments) {
  if (function.kind != Kind::function) fail("'" + to_text(function) + "' is no function");
  check_arity(*function.function, arguments);
  return function.function->code(*this, arguments.data());
}

Value Machine::text(std::string_view text) { return Value::of(&*texts_.emplace(text).first); }

/// The value of an exception that a script threw.
Value Machine::error(const std::exception& caught) {
  if (const auto* thrown = dynamic_cast<const ScriptError*>(&caught)) return thrown->value();
  return Value::of(&errors_.emplace_back(CaughtError{std::current_exception(), caught.what()}));
}

void Machine::fail(std::string_view message) { throw ScriptError(text(message), std::string(message)); }

std::string Machine::position(std::uintptr_t return_address) const {
  const std::uintptr_t call = return_address - 1;
  for (const Compiled& code : compiled_) {
    if (call < code.begin || call >= code.end) continue;
    const auto behind = std::ranges::upper_bound(code.lines, call - code.begin, {}, &CodeLine::offset);
    return script_name_ + ":" + std::to_string(std::prev(behind)->line);
  }
  return "";
}

std::string to_text(Value value) {
  switch (value.kind) {
    case Kind::number:
      return std::to_string(value.number);
    case Kind::text:
      return *value.text;
    case Kind::function:
      return "function " + value.function->name;
    case Kind::error:
      return value.error->message;
  }
  return "";
}

}  // namespace toy

// The functions that the generated code calls.
#pragma once

#include <unwind.h>

#include "examples/toy_vm/bytecode.h"
#include "examples/toy_vm/value.h"

namespace toy {

/// operands[0] op operands[1], of any values. Throws ScriptError if that has no meaning.
Value compute(Machine& machine, const Value* operands, Op op);

/// Throws ScriptError; for a caught C++ exception, that exception.
[[noreturn]] void throw_value(Machine& machine, const Value* value);

[[noreturn]] void stack_overflow(Machine& machine);

/// The value of an exception that has landed at a `catch`, where it ends.
Value caught(Machine& machine, _Unwind_Exception* exception);

/// Ends an exception that was kept by a `finally`. Null: none was.
void discard(_Unwind_Exception* exception) noexcept;

}  // namespace toy

// Conversion of byte code to x86-64, a function at a time. Each becomes a procedure that is registered under its name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/toy_vm/bytecode.h"
#include "examples/toy_vm/value.h"

namespace toy {

/// The code from `offset` on, in bytes from its start, is that of a line.
struct CodeLine {
  std::uint32_t offset;
  std::uint32_t line;
};

struct GeneratedCode {
  void* start = nullptr;
  std::size_t size = 0;
  std::vector<CodeLine> lines{};  ///< by offset
};

/// Makes a toy::Code. `texts` are those of the program. Throws std::runtime_error if asmjit fails.
GeneratedCode generate(Machine& machine, const FunctionCode& function, std::span<const Value> texts);

/// Value (Machine&, const Value* arguments, Code function): calls function(machine, arguments). An exception that is
/// not caught below it is passed to machine.see_uncaught() before anything is unwound.
GeneratedCode generate_entry(Machine& machine);

}  // namespace toy

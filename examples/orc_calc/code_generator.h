// Conversion of syntax to LLVM's intermediate code.
#pragma once

#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>

#include <map>
#include <string>

#include "examples/orc_calc/syntax.h"

namespace calc {

/// The function that compiled functions call when the stack is nearly used up.
inline constexpr const char* k_stack_is_full = "calc.stack_is_full";

/// A module with one function, `symbol`. `functions` are all that can be called, with their numbers of parameters.
/// Throws SyntaxError for unknown names.
llvm::orc::ThreadSafeModule generate(const Item& item, const std::map<std::string, unsigned>& functions,
                                     const std::string& symbol);

}  // namespace calc

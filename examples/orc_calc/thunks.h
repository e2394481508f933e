// Natives behind code that asmjit makes: a stack then has frames of two code generators.
#pragma once

#include <cstdint>

#include "examples/orc_calc/natives.h"

namespace calc {

/// Whether the program was built with asmjit.
bool have_thunks() noexcept;

/// A function that calls the native with its own arguments; made and registered once. Throws std::runtime_error.
std::uint64_t thunk_of(const Native& native);

}  // namespace calc

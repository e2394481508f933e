// Random procedures, written with asmjit as hand-written code is: frames of every kind, registers saved in all places,
// branches, loops, calls, arguments on the stack, and returns from any depth.
#pragma once

#include <random>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"

namespace jitunwind::test {

/// Writes one procedure. Equal states of `random` write equal code. It is not meant to be run: it calls address 0.
void write_random_code(AsmjitAssembler& a, std::mt19937_64& random);

}  // namespace jitunwind::test

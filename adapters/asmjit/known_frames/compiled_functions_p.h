// Functions of an x86::Compiler. Their frames are known from their FuncFrames, the bytes of prologue and epilogue, and
// the registers that their instructions name. So nothing of them is written a second time, and no path is followed.
#pragma once

#include <asmjit/x86.h>

#include <optional>

#include "jitunwind/adapters/asmjit/asmjit_code.h"

namespace jitunwind::derivation {

/// Describes all procedures of a code that a Compiler wrote, and nobody else. Empty: one of them has to be followed.
/// That is so for any instruction in a body that moves SP, leaves the function, names the register by which the frame
/// is found, or names a preserved register that the prologue has not saved. It is also so for frames that only rows
/// describe. Throws std::bad_alloc. Thread-safe as describe_asmjit().
std::optional<AsmjitDescription> describe_compiled(const ::asmjit::CodeHolder& code);

}  // namespace jitunwind::derivation

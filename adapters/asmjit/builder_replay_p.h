// The trace of a finalized x86::Builder or x86::Compiler: its nodes are serialized once more into an assembler that
// notes what it writes.
#pragma once

#include <asmjit/x86.h>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// `code` is what `builder` is attached to and was serialized to, by finalize() and nothing else. Error: it was not, or
/// has been changed since. Throws std::bad_alloc.
Result<CodeTrace, Refusal> replay(::asmjit::BaseBuilder& builder, const ::asmjit::CodeHolder& code);

}  // namespace jitunwind::derivation

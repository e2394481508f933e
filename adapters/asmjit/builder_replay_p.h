// The trace of a finalized x86::Builder or x86::Compiler: its nodes are serialized a second time, into an assembler
// that records a trace.
#pragma once

#include <asmjit/x86.h>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// `builder` must be attached to `code` and serialized to it, by finalize() and nothing else. Error: the code was
/// written in another way, or has changed since. Throws std::bad_alloc.
Result<CodeTrace, Refusal> replay(::asmjit::BaseBuilder& builder, const ::asmjit::CodeHolder& code);

}  // namespace jitunwind::derivation

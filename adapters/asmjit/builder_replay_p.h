// The record of a finalized x86::Builder or x86::Compiler: its nodes are serialized a second time, into an assembler
// that records them.
#pragma once

#include <asmjit/x86.h>

#include <functional>
#include <optional>

#include "jitunwind/adapters/asmjit/trace_recorder_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// Gets the record of a builder, and the private copy of the code that it is of.
using UseReplay = std::function<void(const TraceRecorder& recorder, const ::asmjit::CodeHolder& copy)>;

/// `builder` must be attached to `code` and serialized to it, by finalize() and nothing else. Refused: the code was
/// written in another way, or has changed since; `use` is not called. Throws std::bad_alloc.
std::optional<Refusal> replay(::asmjit::BaseBuilder& builder, const ::asmjit::CodeHolder& code, const UseReplay& use);

/// The trace of the record.
Result<CodeTrace, Refusal> replayed_trace(::asmjit::BaseBuilder& builder, const ::asmjit::CodeHolder& code);

}  // namespace jitunwind::derivation

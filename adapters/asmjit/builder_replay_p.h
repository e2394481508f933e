// The record of a finalized x86::Builder or x86::Compiler: its nodes are serialized a second time, into an assembler
// that records them.
#pragma once

#include <asmjit/x86.h>

#include <optional>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/trace_recorder_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// Serializes the nodes and adds the properties of an instruction that only its node has.
class ReplayAssembler final : public AsmjitAssembler {
 public:
  ReplayAssembler(::asmjit::CodeHolder* code, ::asmjit::BaseNode* first) noexcept
      : AsmjitAssembler(code), next_(first) {}

  ::asmjit::Error _emit(::asmjit::InstId id, const ::asmjit::Operand_& o0, const ::asmjit::Operand_& o1,
                        const ::asmjit::Operand_& o2, const ::asmjit::Operand_* more) override;
  // The nodes name sections of the other CodeHolder; the section with the same id is used.
  ::asmjit::Error section(::asmjit::Section* section) override;

 private:
  ::asmjit::BaseNode* next_;
};

class BuilderReplay {
 public:
  /// `builder` must be attached to `code` and serialized to it, by finalize() and nothing else. Throws std::bad_alloc.
  BuilderReplay(::asmjit::BaseBuilder& builder, const ::asmjit::CodeHolder& code);
  BuilderReplay(const BuilderReplay&) = delete;
  BuilderReplay& operator=(const BuilderReplay&) = delete;

  /// The code was written in another way, or has changed since: there is no record.
  const std::optional<Refusal>& refusal() const noexcept { return refusal_; }
  /// The record, and the private copy of the code that it is of. Precondition: not refused.
  const TraceRecorder& recorder() const noexcept { return *recorder_; }
  const ::asmjit::CodeHolder& code() const noexcept { return copy_; }
  /// The trace of the record.
  Result<CodeTrace, Refusal> trace() const;

 private:
  std::optional<Refusal> write(const ::asmjit::CodeHolder& code);

  ::asmjit::BaseBuilder& builder_;
  ::asmjit::CodeHolder copy_;
  std::optional<ReplayAssembler> assembler_;
  TraceRecorder* recorder_ = nullptr;
  std::optional<Refusal> refusal_;
};

}  // namespace jitunwind::derivation

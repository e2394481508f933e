// Access to the private parts of the adapter's emitters, for the adapter itself.
#pragma once

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_builder.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/trace_recorder_p.h"

namespace jitunwind {

struct AsmjitAccess {
  using EmitProlog = decltype(asmjit::BaseEmitter::Funcs::JITUNWIND_ASMJIT(emitProlog, emit_prolog));

  /// Null for an emitter of another class.
  static AsmjitAssembler* find_assembler(asmjit::BaseEmitter& emitter) noexcept;
  static AsmjitBuilder* find_builder(asmjit::BaseEmitter& emitter) noexcept;

  /// Null when there was no memory for a recorder.
  static derivation::TraceRecorder* recorder(AsmjitAssembler& assembler) noexcept { return assembler.recorder_.get(); }
  static void add_starts(const AsmjitBuilder& builder, const asmjit::CodeHolder& code,
                         derivation::TraceRecorder& recorder);
  static void add_internal_labels(const AsmjitBuilder& builder, derivation::CodeTrace& trace);

  /// Replaces the function that writes prologues by the adapter's. Each attachment resets it to asmjit's, which is one
  /// function for all x86 emitters. The adapter recognizes its own emitters by this function.
  static void watch_prologs(asmjit::BaseEmitter& emitter, EmitProlog ours) noexcept;
  static asmjit::Error emit_prolog_of_assembler(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame);
  static asmjit::Error emit_prolog_of_builder(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame);
};

}  // namespace jitunwind

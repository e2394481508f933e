// What the adapter's own parts may do with its emitters.
#pragma once

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_builder.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/trace_recorder_p.h"

namespace jitunwind {

struct AsmjitAccess {
  using EmitProlog = decltype(asmjit::BaseEmitter::Funcs::JITUNWIND_ASMJIT(emitProlog, emit_prolog));

  /// Null when the emitter is none of ours.
  static AsmjitAssembler* find_assembler(asmjit::BaseEmitter& emitter) noexcept;
  static AsmjitBuilder* find_builder(asmjit::BaseEmitter& emitter) noexcept;

  /// Null when there was no memory for it.
  static derivation::TraceRecorder* recorder(AsmjitAssembler& assembler) noexcept { return assembler.recorder_.get(); }
  static void add_starts(const AsmjitBuilder& builder, derivation::CodeTrace& trace);

  /// Puts a function of ours in the place of the one that writes prologues. Every attachment gives an emitter asmjit's
  /// own again, the same for all x86 emitters. It is also how our emitters are known.
  static void watch_prologs(asmjit::BaseEmitter& emitter, EmitProlog ours) noexcept;
  static asmjit::Error emit_prolog_of_assembler(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame);
  static asmjit::Error emit_prolog_of_builder(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame);
};

}  // namespace jitunwind

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"

#include <atomic>

#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

namespace jitunwind {
namespace {

namespace v = asmjit_version;

std::atomic<AsmjitAccess::EmitProlog> g_emit_prolog = nullptr;

asmjit::Error emit_prolog(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame) {
  return g_emit_prolog.load(std::memory_order_relaxed)(emitter, frame);
}

derivation::RegSet preserved_by(const asmjit::FuncFrame& frame) {
  return derivation::registers_of(v::preserved_registers(frame, asmjit::RegGroup::kGp),
                                  v::preserved_registers(frame, asmjit::RegGroup::kVec));
}

}  // namespace

AsmjitAssembler* AsmjitAccess::find_assembler(asmjit::BaseEmitter& emitter) noexcept {
  const bool ours = v::emit_prolog_function(emitter) == &emit_prolog_of_assembler;
  return ours ? static_cast<AsmjitAssembler*>(&emitter) : nullptr;
}

AsmjitBuilder* AsmjitAccess::find_builder(asmjit::BaseEmitter& emitter) noexcept {
  const bool ours = v::emit_prolog_function(emitter) == &emit_prolog_of_builder;
  return ours ? static_cast<AsmjitBuilder*>(&emitter) : nullptr;
}

void AsmjitAccess::watch_prologs(asmjit::BaseEmitter& emitter, EmitProlog ours) noexcept {
  auto& function = v::emit_prolog_function(emitter);
  g_emit_prolog.store(function, std::memory_order_relaxed);
  function = ours;
}

asmjit::Error AsmjitAccess::emit_prolog_of_assembler(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame) {
  auto& assembler = *static_cast<AsmjitAssembler*>(emitter);
  if (recorder(assembler)) recorder(assembler)->start({v::place_of(assembler), {}, preserved_by(frame), false});
  return emit_prolog(emitter, frame);
}

asmjit::Error AsmjitAccess::emit_prolog_of_builder(asmjit::BaseEmitter* emitter, const asmjit::FuncFrame& frame) {
  const asmjit::Error error = static_cast<AsmjitBuilder*>(emitter)->mark(preserved_by(frame), false, {});
  return error == asmjit::kErrorOk ? emit_prolog(emitter, frame) : error;
}

void AsmjitAccess::add_starts(const AsmjitBuilder& builder, const asmjit::CodeHolder& code,
                              derivation::TraceRecorder& recorder) {
  for (const AsmjitBuilder::Mark& mark : builder.marks_)
    if (const v::BoundLabel label = v::bound_label(code, mark.label); label.bound)
      recorder.start({label.place(), mark.name, mark.preserved, mark.declared});
}

void AsmjitAccess::add_internal_labels(const AsmjitBuilder& builder, derivation::CodeTrace& trace) {
  for (const AsmjitBuilder::Mark& mark : builder.marks_) trace.internal.push_back(mark.label);
}

}  // namespace jitunwind

#include "jitunwind/adapters/asmjit/code_writers_p.h"

#include <iterator>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

namespace jitunwind::derivation {

namespace v = asmjit_version;

CodeWriters::CodeWriters(const ::asmjit::CodeHolder& code) : code_(code) {
  v::visit_emitters(code, [&](::asmjit::BaseEmitter& emitter) {
    if (AsmjitAssembler* const known = AsmjitAccess::find_assembler(emitter)) {
      const TraceRecorder* const recorder = AsmjitAccess::recorder(*known);
      if (recorder && !recorder->is_idle()) recorder_ = recorder, ++assemblers_;
    } else if (!v::is_builder(emitter)) {
      has_other_assembler_ = true;
    } else if (auto* const builder = emitter.as<::asmjit::BaseBuilder>(); v::has_nodes(*builder)) {
      builders_.push_back(builder);
    }
  });
}

const BuilderReplay& CodeWriters::replay(std::size_t builder) {
  while (replays_.size() <= builder) replays_.emplace_back(*builders_[replays_.size()], code_);
  return *std::next(replays_.begin(), static_cast<std::ptrdiff_t>(builder));
}

CodeWriters::Record CodeWriters::only_record() {
  if (code_.arch() != ::asmjit::Arch::kX64) return {};
  if (assemblers_ == 1) return {recorder_, &code_};
  if (assemblers_ != 0 || builders_.size() != 1 || v::is_compiler(*builders_.front())) return {};
  const BuilderReplay& only = replay(0);
  return only.refusal() ? Record{} : Record{&only.recorder(), &only.code()};
}

Result<CodeTrace, Refusal> CodeWriters::trace() {
  std::vector<const TraceRecorder*> recorders;
  v::visit_emitters(code_, [&](::asmjit::BaseEmitter& emitter) {
    AsmjitAssembler* const known = AsmjitAccess::find_assembler(emitter);
    if (known) recorders.push_back(AsmjitAccess::recorder(*known));
    if (known && !recorders.back()) throw std::bad_alloc();
  });
  if (assemblers_ == 0 && !builders_.empty()) {
    auto first = replay(0).trace();
    for (std::size_t i = 1; i < builders_.size() && !first; ++i)
      if (auto other = replay(i).trace()) return other;
    return first;
  }
  if (assemblers_ == 0 && has_other_assembler_)
    return Refusal{
        {}, {}, "an asmjit::x86::Assembler keeps no record of what it writes: use jitunwind::AsmjitAssembler", {}};
  if (recorders.empty()) return Refusal{{}, {}, "no emitter is attached to the code any more", {}};
  return TraceRecorder::trace(recorders, code_);
}

}  // namespace jitunwind::derivation

#include "jitunwind/adapters/asmjit/asmjit_code.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/builder_replay_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_description_p.h"

namespace jitunwind {
namespace {

namespace v = asmjit_version;
using derivation::CodePlace;
using derivation::CodeTrace;
using derivation::Refusal;

AsmjitRefusal refusal_of(const Refusal& refusal, const std::string& procedure, const asmjit::CodeHolder& code) {
  AsmjitRefusal out;
  out.procedure = procedure;
  if (refusal.place.section < v::section_count(code))
    out.offset = v::section_by_id(code, refusal.place.section)->offset() + refusal.place.offset;
  if (refusal.mnemonic && *refusal.mnemonic != derivation::k_padding)
    out.instruction = v::instruction_name(*refusal.mnemonic);
  out.reason = refusal.reason;
  return out;
}

/// The trace of everything that was written into the code.
Result<CodeTrace, Refusal> trace_of(asmjit::CodeHolder& code) {
  std::vector<AsmjitAssembler*> ours;
  std::vector<asmjit::BaseEmitter*> others;
  for (asmjit::BaseEmitter* emitter : v::attached_emitters(code)) {
    if (AsmjitAssembler* known = AsmjitAccess::find_assembler(*emitter))
      ours.push_back(known);
    else
      others.push_back(emitter);
  }
  if (others.empty() && ours.size() == 1) {
    if (!AsmjitAccess::recorder(*ours.front())) throw std::bad_alloc();
    return AsmjitAccess::recorder(*ours.front())->trace(code);
  }
  if (ours.empty() && others.size() == 1 && v::is_builder(*others.front()))
    return derivation::replay(*others.front()->as<asmjit::BaseBuilder>(), code);
  const char* reason = "several emitters are attached to the code";
  if (ours.empty() && others.empty()) reason = "no emitter is attached to the code any more";
  if (ours.empty() && others.size() == 1)
    reason = "an asmjit::x86::Assembler keeps no record of what it writes: use jitunwind::AsmjitAssembler";
  return Refusal{{}, {}, reason};
}

}  // namespace

std::string AsmjitRefusal::text() const {
  std::array<char, 24> at;
  std::snprintf(at.data(), at.size(), "+0x%llx: ", static_cast<unsigned long long>(offset));
  return (procedure.empty() ? "" : procedure + ": ") + (instruction.empty() ? "" : instruction + " at ") + at.data() +
         reason;
}

std::string AsmjitDescription::text() const {
  std::string text;
  for (const AsmjitRefusal& refusal : refusals) text += refusal.text() + "\n";
  return text;
}

AsmjitDescription describe_asmjit(asmjit::CodeHolder& code) {
  AsmjitDescription out;
  if (code.arch() != asmjit::Arch::kX64) {
    out.refusals.push_back({"", 0, "", "code for another CPU than x86-64"});
    return out;
  }
  const auto trace = trace_of(code);
  if (!trace) {
    out.refusals.push_back(refusal_of(trace.error(), "", code));
    return out;
  }
  derivation::FrameAnalysis analysis(*trace, arch::x86_64);
  analysis.run();
  for (const derivation::TracedProcedure& procedure : analysis.procedures()) {
    if (procedure.refusal) {
      out.refusals.push_back(refusal_of(*procedure.refusal, procedure.name, code));
      continue;
    }
    auto description = derivation::describe(analysis, procedure, *trace, arch::x86_64);
    if (!description) {
      out.refusals.push_back(refusal_of(description.error(), procedure.name, code));
      continue;
    }
    const std::uint64_t base = v::section_by_id(code, procedure.section)->offset();
    out.procedures.push_back({procedure.name, base + procedure.begin, base + procedure.end, std::move(*description)});
  }
  return out;
}

}  // namespace jitunwind

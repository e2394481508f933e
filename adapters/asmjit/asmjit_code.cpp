#include "jitunwind/adapters/asmjit/asmjit_code.h"

#include <array>
#include <cstdio>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/code_writers_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_description_p.h"
#include "jitunwind/adapters/asmjit/known_frames/compiled_functions_p.h"

namespace jitunwind {
namespace {

namespace v = asmjit_version;
using derivation::CodePlace;
using derivation::Refusal;

std::string name_of(std::uint16_t mnemonic) {
  if (mnemonic == derivation::k_padding) return "";
  return mnemonic == derivation::k_embedded ? "embedded instruction" : v::instruction_name(mnemonic);
}

std::uint64_t offset_of(const CodePlace& place, const asmjit::CodeHolder& code) {
  if (place.section >= v::section_count(code)) return 0;
  return v::section_by_id(code, place.section)->offset() + place.offset;
}

/// "+0x1c".
std::string text_of(std::uint64_t offset) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "+0x%llx", static_cast<unsigned long long>(offset));
  return text.data();
}

AsmjitRefusal refusal_of(const Refusal& refusal, const std::string& procedure, const asmjit::CodeHolder& code) {
  AsmjitRefusal out;
  out.procedure = procedure;
  out.offset = offset_of(refusal.place, code);
  if (refusal.mnemonic) out.instruction = name_of(*refusal.mnemonic);
  out.reason = refusal.reason;
  const char* before = ": ";
  for (const Refusal::Cause& cause : refusal.causes) {
    const std::string name = cause.mnemonic ? name_of(*cause.mnemonic) : "";
    out.reason +=
        before + (name.empty() ? "what is" : name) + " at " + text_of(offset_of(cause.place, code)) + " " + cause.deed;
    before = ", ";
  }
  return out;
}

}  // namespace

std::string AsmjitRefusal::text() const {
  return (procedure.empty() ? "" : procedure + ": ") + (instruction.empty() ? "" : instruction + " at ") +
         text_of(offset) + ": " + reason;
}

std::string AsmjitDescription::text() const {
  std::string text;
  for (const AsmjitRefusal& refusal : refusals) text += refusal.text() + "\n";
  return text;
}

AsmjitDescription describe_asmjit(asmjit::CodeHolder& code) {
  derivation::CodeWriters writers(code);
  return derivation::describe_written(code, writers);
}

AsmjitDescription derivation::describe_written(asmjit::CodeHolder& code, CodeWriters& writers) {
  AsmjitDescription out;
  if (code.arch() != asmjit::Arch::kX64) {
    out.refusals.push_back({"", 0, "", "code for another CPU than x86-64"});
    return out;
  }
  if (auto known = derivation::describe_compiled(code)) return std::move(*known);
  const auto trace = writers.trace();
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

#include "jitunwind/adapters/asmjit/builder_replay_p.h"

#include <algorithm>
#include <new>
#include <optional>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

namespace jitunwind::derivation {
namespace {

namespace v = asmjit_version;
using ::asmjit::BaseNode;
using ::asmjit::CodeHolder;
using ::asmjit::Error;
using ::asmjit::Operand_;

Refusal refused(const char* reason) { return Refusal{{0, 0}, std::nullopt, reason, {}}; }

/// Gives `to` the same sections and labels, all of them empty.
bool copy_layout(const CodeHolder& from, CodeHolder& to) {
  if (v::init_like(to, from) != ::asmjit::kErrorOk) return false;
  while (v::section_count(to) < v::section_count(from))
    if (!v::new_section_like(to, *v::section_by_id(from, static_cast<std::uint32_t>(v::section_count(to)))))
      return false;
  while (v::label_count(to) < v::label_count(from))
    if (!v::add_label(to)) return false;
  return true;
}

/// Compares all bytes but those that asmjit fills in when the code gets its address.
bool same_bytes(const CodeHolder& a, const CodeHolder& b) {
  for (std::uint32_t id = 0; id < v::section_count(a); ++id) {
    const std::span<const std::uint8_t> one = v::section_bytes(a, id), other = v::section_bytes(b, id);
    if (v::is_address_table(a, id) || std::ranges::equal(one, other)) continue;
    if (one.size() != other.size()) return false;
    std::vector<std::uint8_t> patched(one.begin(), one.end());
    for (const v::PatchedBytes& patch : v::patched_bytes(a, id))
      for (std::uint64_t i = patch.begin; i < patch.end && i < one.size(); ++i) patched[i] = other[i];
    if (!std::ranges::equal(patched, other)) return false;
  }
  return true;
}

bool same_labels(const CodeHolder& a, const CodeHolder& b) {
  for (std::uint32_t id = 0; id < v::label_count(a); ++id) {
    const v::BoundLabel one = v::bound_label(a, id), other = v::bound_label(b, id);
    if (one.bound != other.bound || one.section != other.section || one.offset != other.offset) return false;
  }
  return true;
}

/// Only the original's labels have names. Procedures and their conventions are properties of nodes, not of
/// instructions.
void add_starts(::asmjit::BaseBuilder& builder, const CodeHolder& code, TraceRecorder& recorder) {
  for (LabelId id = 0; id < v::label_count(code); ++id)
    if (const v::BoundLabel label = v::bound_label(code, id); label.bound && !label.name.empty())
      recorder.start({label.place(), std::string(label.name), 0, false});
  for (BaseNode* node = v::first_node(builder); node; node = node->next()) {
    if (!v::is_function(*node)) continue;
    const v::FunctionNode function = v::function_node(*node);
    if (const v::BoundLabel label = v::bound_label(code, function.label); label.bound)
      recorder.start({label.place(), {}, registers_of(function.preserved_general, function.preserved_vector), true});
  }
  if (const AsmjitBuilder* ours = AsmjitAccess::find_builder(builder)) AsmjitAccess::add_starts(*ours, code, recorder);
}

/// Labels that code outside of the builder's cannot name.
void add_internal_labels(::asmjit::BaseBuilder& builder, CodeTrace& trace) {
  for (BaseNode* node = v::first_node(builder); node; node = node->next())
    if (v::is_function(*node)) trace.internal.push_back(v::function_node(*node).exit_label);
  if (const AsmjitBuilder* ours = AsmjitAccess::find_builder(builder)) AsmjitAccess::add_internal_labels(*ours, trace);
}

}  // namespace

Error ReplayAssembler::_emit(::asmjit::InstId id, const Operand_& o0, const Operand_& o1, const Operand_& o2,
                             const Operand_* more) {
  const Error error = AsmjitAssembler::_emit(id, o0, o1, o2, more);
  while (next_ && !v::is_instruction(*next_)) next_ = next_->next();
  if (error != ::asmjit::kErrorOk || !next_) return error;
  TraceRecorder& recorder = *AsmjitAccess::recorder(*this);
  if (const std::int64_t popped = v::bytes_popped_by_callee(*next_); popped != 0) recorder.callee_pops(popped);
  if (auto targets = v::annotated_targets(*next_); !targets.empty()) recorder.jumps_to(std::move(targets));
  next_ = next_->next();
  return error;
}

Error ReplayAssembler::section(::asmjit::Section* section) {
  return AsmjitAssembler::section(v::section_by_id(*_code, v::section_id(*section)));
}

BuilderReplay::BuilderReplay(::asmjit::BaseBuilder& builder, const CodeHolder& code) : builder_(builder) {
  if (!copy_layout(code, copy_)) throw std::bad_alloc();
  recorder_ = AsmjitAccess::recorder(assembler_.emplace(&copy_, v::first_node(builder)));
  if (!recorder_) throw std::bad_alloc();
  refusal_ = write(code);
}

std::optional<Refusal> BuilderReplay::write(const CodeHolder& code) {
  v::copy_encoding_options(builder_, *assembler_);
  if (!v::first_node(builder_) || v::serialize(builder_, *assembler_) != ::asmjit::kErrorOk)
    return refused("the emitter's nodes cannot be written as instructions: it was not finalized");
  // References between sections may have been resolved already.
  const bool same =
      same_labels(code, copy_) &&
      (same_bytes(code, copy_) || (v::link_sections(copy_) == ::asmjit::kErrorOk && same_bytes(code, copy_)));
  if (!same)
    return refused("the code is not what the attached emitter's nodes say: use an AsmjitAssembler for what was added");
  add_starts(builder_, code, *recorder_);
  return std::nullopt;
}

Result<CodeTrace, Refusal> BuilderReplay::trace() const {
  if (refusal_) return *refusal_;
  const TraceRecorder* const one = recorder_;
  auto trace = TraceRecorder::trace({&one, 1}, copy_);
  if (trace) add_internal_labels(builder_, *trace);
  return trace;
}

}  // namespace jitunwind::derivation

#include "jitunwind/adapters/asmjit/trace_recorder_p.h"

#include <algorithm>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

namespace jitunwind::derivation {

namespace v = asmjit_version;

namespace {

/// FNV-1a, never 0.
std::uint32_t hash_of(std::span<const std::uint8_t> bytes) noexcept {
  std::uint32_t hash = 0x811c9dc5u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x01000193u;
  return hash == 0 ? 1 : hash;
}

/// asmjit fills in addresses where labels are bound and where the code gets its place.
bool may_be_patched(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand_> operands) noexcept {
  const bool goes_elsewhere = v::control_flow(v::instruction_id(instruction)) != ::asmjit::InstControlFlow::kRegular;
  return std::ranges::any_of(operands, [&](const ::asmjit::Operand_& operand) {
    if (v::is_mem(operand)) return !v::has_base_register(operand);
    return v::is_label(operand) || (goes_elsewhere && v::is_imm(operand));
  });
}

}  // namespace

void TraceRecorder::reset() noexcept {
  sections_.clear();
  effects_.clear();
  embedded_.clear();
  starts_.clear();
  jump_targets_.clear();
  call_sites_.clear();
  frame_handlers_.clear();
  out_of_memory_ = false;
}

template <class Record>
void TraceRecorder::guarded(Record record) noexcept {
  try {
    record();
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
  }
}

/// The section of a place that is written up to `end` now.
TraceRecorder::Written& TraceRecorder::section(CodePlace place, std::uint32_t end) {
  if (place.section >= sections_.size()) sections_.resize(place.section + 1);
  Written& written = sections_[place.section];
  if (place.offset > written.end && !written.unseen)
    written.unseen = Refusal{{place.section, written.end}, {}, "bytes here were not written through this emitter"};
  const bool over_code = !written.instructions.empty() && written.instructions.back().end > place.offset;
  if (over_code && !written.unseen) written.unseen = Refusal{place, {}, "was written over other code"};
  written.end = std::max(written.end, end);
  last_section_ = place.section;
  return written;
}

/// True when the instruction takes the place of one of the same length that was written before.
bool TraceRecorder::replace(const TracedInstruction& instruction) {
  if (instruction.section >= sections_.size()) return false;
  auto& instructions = sections_[instruction.section].instructions;
  if (instructions.empty() || instructions.back().begin < instruction.begin) return false;
  const auto old = std::ranges::lower_bound(instructions, instruction.begin, {}, &TracedInstruction::begin);
  if (old == instructions.end() || old->begin != instruction.begin || old->end != instruction.end) return false;
  *old = instruction;
  return true;
}

void TraceRecorder::instruction(CodePlace place, std::span<const std::uint8_t> bytes,
                                const ::asmjit::BaseInst& instruction,
                                std::span<const ::asmjit::Operand_> operands) noexcept {
  const auto end = place.offset + static_cast<std::uint32_t>(bytes.size());
  guarded([&] {
    const auto first = static_cast<std::uint32_t>(effects_.size());
    append_effects(instruction, operands, effects_);
    const TracedInstruction traced{place.section,
                                   place.offset,
                                   end,
                                   first,
                                   static_cast<std::uint16_t>(effects_.size() - first),
                                   static_cast<std::uint16_t>(v::instruction_id(instruction)),
                                   may_be_patched(instruction, operands) ? 0 : hash_of(bytes)};
    if (!replace(traced)) section(place, end).instructions.push_back(traced);
  });
}

void TraceRecorder::padding(CodePlace place, std::uint32_t end) noexcept {
  if (place.offset == end) return;
  guarded([&] {
    const auto first = static_cast<std::uint32_t>(effects_.size());
    section(place, end).instructions.push_back({place.section, place.offset, end, first, 0, k_padding, 0});
  });
}

void TraceRecorder::data(CodePlace place, std::uint32_t end) noexcept {
  if (place.offset == end) return;
  guarded([&] { section(place, end).data.push_back({place.section, place.offset, end}); });
}

void TraceRecorder::embedded_label(CodePlace place, LabelId label) noexcept {
  guarded([&] { embedded_.push_back({place, label}); });
}

void TraceRecorder::start(const ProcedureStart& start) noexcept {
  guarded([&] { starts_.push_back(start); });
}

TracedInstruction* TraceRecorder::last_instruction() {
  if (last_section_ >= sections_.size() || sections_[last_section_].instructions.empty()) return nullptr;
  return &sections_[last_section_].instructions.back();
}

void TraceRecorder::callee_pops(std::int64_t bytes) noexcept {
  const TracedInstruction* last = last_instruction();
  if (!last || last->effects == 0) return;
  Effect& effect = effects_[last->first_effect + last->effects - 1u];
  if (effect.kind == Effect::Kind::call) effect.value = bytes;
}

void TraceRecorder::jumps_to(std::vector<LabelId> targets) noexcept {
  const TracedInstruction* last = last_instruction();
  if (!last || last->effects == 0) return;
  Effect& effect = effects_[last->first_effect + last->effects - 1u];
  if (effect.kind != Effect::Kind::jump_indirect) return;
  guarded([&] {
    jump_targets_.push_back(std::move(targets));
    effect.value = static_cast<std::int64_t>(jump_targets_.size()) - 1;
  });
}

TracedCallSite* TraceRecorder::call_site(LabelId begin, LabelId end, LabelId pad) noexcept {
  TracedCallSite* site = nullptr;
  guarded([&] { site = &call_sites_.emplace_back(TracedCallSite{begin, end, pad, {}}); });
  return site;
}

void TraceRecorder::reason(TracedCallSite& site, const std::function<void(x86_64::Builder&)>& say) noexcept {
  guarded([&] { site.reasons.push_back(say); });
}

void TraceRecorder::frame_handler(CodePlace place, FrameHandler handler) noexcept {
  guarded([&] { frame_handlers_.push_back({place, std::move(handler)}); });
}

/// The first instruction whose bytes somebody has changed in the buffer.
std::optional<Refusal> TraceRecorder::find_changed(const ::asmjit::CodeHolder& code, std::uint32_t section,
                                                   const Written& written) {
  const std::vector<std::uint8_t> bytes = v::section_bytes(code, section);
  for (const TracedInstruction& i : written.instructions)
    if (i.bytes != 0 && i.end <= bytes.size() && hash_of(std::span(bytes).subspan(i.begin, i.end - i.begin)) != i.bytes)
      return Refusal{{section, i.begin}, i.mnemonic, "has other bytes in the buffer than were written for it"};
  return std::nullopt;
}

Result<CodeTrace, Refusal> TraceRecorder::trace(const ::asmjit::CodeHolder& code) const {
  if (out_of_memory_) throw std::bad_alloc();
  CodeTrace out;
  for (std::uint32_t id = 0; id < v::section_count(code); ++id) {
    const std::size_t size = v::buffer_size(*v::section_by_id(code, id));
    const Written none;
    const Written& written = id < sections_.size() ? sections_[id] : none;
    if (written.unseen) return *written.unseen;
    if (written.end != size && !v::is_address_table(code, id))
      return Refusal{{id, written.end}, {}, "bytes here were not written through this emitter"};
    if (const auto changed = find_changed(code, id, written)) return *changed;
    out.instructions.insert(out.instructions.end(), written.instructions.begin(), written.instructions.end());
    out.data.insert(out.data.end(), written.data.begin(), written.data.end());
  }
  out.effects = effects_;
  out.embedded = embedded_;
  std::ranges::stable_sort(out.embedded, {}, &EmbeddedLabel::place);
  out.starts = starts_;
  out.jump_targets = jump_targets_;
  out.labels.resize(v::label_count(code));
  for (LabelId id = 0; id < out.labels.size(); ++id) {
    const v::BoundLabel label = v::bound_label(code, id);
    if (!label.bound) continue;
    out.labels[id] = CodePlace{label.section, static_cast<std::uint32_t>(label.offset)};
    if (!label.name.empty()) out.starts.push_back({*out.labels[id], label.name, 0, false});
  }
  std::ranges::stable_sort(out.starts, {}, &ProcedureStart::place);
  out.call_sites.assign(call_sites_.begin(), call_sites_.end());
  out.frame_handlers = frame_handlers_;
  for (const TracedCallSite& site : out.call_sites)
    for (const LabelId label : {site.begin, site.end, site.pad})
      if (label != k_no_label && (label >= out.labels.size() || !out.labels[label]))
        return Refusal{{0, 0}, {}, "a call site or its landing pad has a label that is not bound"};
  return out;
}

}  // namespace jitunwind::derivation

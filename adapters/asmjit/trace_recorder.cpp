#include "jitunwind/adapters/asmjit/trace_recorder_p.h"

#include <algorithm>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

namespace jitunwind::derivation {

namespace v = asmjit_version;

namespace {

std::uint32_t check_in(std::span<const std::uint8_t> section, const TracedInstruction& i) noexcept {
  return check_of(section.subspan(i.begin, i.end - i.begin));
}

/// asmjit fills in addresses when labels are bound and when the code gets its place.
bool may_be_patched(std::uint32_t instruction, std::span<const ::asmjit::Operand_> operands) noexcept {
  const bool goes_elsewhere = v::control_flow(instruction) != ::asmjit::InstControlFlow::kRegular;
  return std::ranges::any_of(operands, [&](const ::asmjit::Operand_& operand) {
    if (v::is_mem(operand)) return !v::has_base_register(operand);
    return v::is_label(operand) || (goes_elsewhere && v::is_imm(operand));
  });
}

}  // namespace

void TraceRecorder::reset() noexcept {
  sections_.clear();
  written_last_ = nullptr;
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

TraceRecorder::Written& TraceRecorder::section(std::uint32_t id) {
  constexpr std::size_t k_few = 64;
  if (id >= sections_.size()) {
    sections_.resize(id + 1);
    sections_[id].instructions.reserve(k_few);
  }
  last_section_ = id;
  written_last_ = &sections_[id].instructions;
  return sections_[id];
}

/// True when the instruction replaces an earlier one of the same length.
bool TraceRecorder::replace(const Recorded& instruction) {
  if (instruction.section >= sections_.size()) return false;
  auto& instructions = sections_[instruction.section].instructions;
  const auto old = std::ranges::lower_bound(instructions, instruction.begin, {}, &Recorded::begin);
  if (old == instructions.end() || old->begin != instruction.begin || old->end != instruction.end) return false;
  *old = instruction;
  return true;
}

void TraceRecorder::add(const Recorded& instruction) {
  if (!replace(instruction)) section(instruction.section).instructions.push_back(instruction);
}

void TraceRecorder::instruction(CodePlace place, Bytes bytes, const ::asmjit::BaseInst& instruction,
                                std::span<const ::asmjit::Operand_> operands) noexcept {
  guarded([&] {
    const std::size_t first = effects_.size();
    append_effects(instruction, operands, effects_);
    const auto id = static_cast<std::uint16_t>(v::instruction_id(instruction));
    add({{place.section, place.offset, place.offset + static_cast<std::uint32_t>(bytes.size()),
          static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(effects_.size() - first), id,
          may_be_patched(id, operands) ? 0 : check_of(bytes)},
         {}});
  });
}

void TraceRecorder::instruction(CodePlace place, Bytes bytes, std::span<const ::asmjit::Operand> changes) noexcept {
  guarded([&] {
    const std::size_t first = effects_.size();
    append_changes(changes, effects_);
    add({{place.section, place.offset, place.offset + static_cast<std::uint32_t>(bytes.size()),
          static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(effects_.size() - first), k_embedded,
          check_of(bytes)},
         {}});
  });
}

/// The instruction with effects behind those in `effects`.
TracedInstruction TraceRecorder::translated(const Recorded& instruction, std::vector<Effect>& effects) const {
  TracedInstruction out = instruction;
  out.first_effect = static_cast<std::uint32_t>(effects.size());
  if (instruction.is_translated()) {
    const auto known = effects_.begin() + instruction.first_effect;
    effects.insert(effects.end(), known, known + instruction.effects);
    return out;
  }
  append_effects(::asmjit::BaseInst(instruction.mnemonic), instruction.operands(), effects);
  out.effects = static_cast<std::uint16_t>(effects.size() - out.first_effect);
  if (may_be_patched(instruction.mnemonic, instruction.operands())) out.bytes = 0;
  return out;
}

std::span<const Effect> TraceRecorder::effects_of(const Recorded& instruction, std::vector<Effect>& memory) const {
  if (instruction.is_translated()) return std::span(effects_).subspan(instruction.first_effect, instruction.effects);
  memory.clear();
  append_effects(::asmjit::BaseInst(instruction.mnemonic), instruction.operands(), memory);
  return memory;
}

bool TraceRecorder::has_changed(const Recorded& i, Bytes section) noexcept {
  if (i.bytes == 0 || check_in(section, i) == i.bytes) return false;
  return i.is_translated() || !may_be_patched(i.mnemonic, i.operands());
}

const TraceRecorder::Written* TraceRecorder::only_instructions() const noexcept {
  const bool only = sections_.size() == 1 && !out_of_memory_ && embedded_.empty() && jump_targets_.empty() &&
                    call_sites_.empty() && frame_handlers_.empty();
  return only ? &sections_.front() : nullptr;
}

void TraceRecorder::padding(CodePlace place, std::uint32_t end) noexcept {
  if (place.offset == end) return;
  guarded([&] {
    const auto first = static_cast<std::uint32_t>(effects_.size());
    section(place.section).instructions.push_back({{place.section, place.offset, end, first, 0, k_padding, 0}, {}});
  });
}

void TraceRecorder::data(CodePlace place, std::uint32_t end) noexcept {
  if (place.offset == end) return;
  guarded([&] { section(place.section).data.push_back({place.section, place.offset, end}); });
}

void TraceRecorder::embedded_label(CodePlace place, LabelId label) noexcept {
  guarded([&] { embedded_.push_back({place, label}); });
}

void TraceRecorder::start(const ProcedureStart& start) noexcept {
  guarded([&] { starts_.push_back(start); });
}

/// The last effect of the last instruction, which is translated now; null: it has none.
Effect* TraceRecorder::last_effect() {
  if (last_section_ >= sections_.size() || sections_[last_section_].instructions.empty()) return nullptr;
  Recorded& last = sections_[last_section_].instructions.back();
  if (!last.is_translated()) last = {translated(last, effects_), {}};
  return last.effects == 0 ? nullptr : &effects_[last.first_effect + last.effects - 1u];
}

void TraceRecorder::callee_pops(std::int64_t bytes) noexcept {
  guarded([&] {
    Effect* const effect = last_effect();
    if (effect && effect->kind == Effect::Kind::call) effect->value = bytes;
  });
}

void TraceRecorder::jumps_to(std::vector<LabelId> targets) noexcept {
  guarded([&] {
    Effect* const effect = last_effect();
    if (!effect || effect->kind != Effect::Kind::jump_indirect) return;
    jump_targets_.push_back(std::move(targets));
    effect->value = static_cast<std::int64_t>(jump_targets_.size()) - 1;
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

// The combined trace of several recorders.

namespace {

template <class Piece>
CodePlace place_of(const Piece& piece) {
  return {piece.section, piece.begin};
}
constexpr auto by_place = [](const auto& piece) { return place_of(piece); };

/// The first instruction whose bytes in the buffer have changed.
std::optional<Refusal> find_changed(std::span<const std::uint8_t> bytes,
                                    std::span<const TracedInstruction> instructions) {
  for (const TracedInstruction& i : instructions)
    if (i.bytes != 0 && i.end <= bytes.size() && check_in(bytes, i) != i.bytes)
      return Refusal{place_of(i), i.mnemonic, "has other bytes in the buffer than were written for it", {}};
  return std::nullopt;
}

/// The first of `size` bytes of a section that no emitter wrote, or that were written twice, once as code. Data may
/// have been filled in.
std::optional<Refusal> find_unseen(std::uint32_t section, std::size_t size,
                                   std::span<const TracedInstruction> instructions, std::span<const TracedData> data) {
  std::uint32_t code_end = 0, end = 0;
  while (!instructions.empty() || !data.empty()) {
    const bool is_code = data.empty() || (!instructions.empty() && instructions.front().begin <= data.front().begin);
    const std::uint32_t begin = is_code ? instructions.front().begin : data.front().begin;
    const std::uint32_t behind = is_code ? instructions.front().end : data.front().end;
    if (begin > end) break;
    if (begin < (is_code ? end : code_end)) return Refusal{{section, begin}, {}, "was written over other code", {}};
    end = std::max(end, behind);
    if (is_code) code_end = behind, instructions = instructions.subspan(1);
    if (!is_code) data = data.subspan(1);
  }
  if (end == size) return std::nullopt;
  return Refusal{{section, end}, {}, "bytes here were not written through an AsmjitAssembler that is attached", {}};
}

/// call next; next: pop rax. A callee that follows its call is not proof of this idiom: a procedure may fall through
/// into itself, to run twice.
void find_pushed_pcs(CodeTrace& trace) {
  std::vector<std::uint32_t> calls(trace.labels.size());
  for (const Effect& e : trace.effects)
    if (e.kind == Effect::Kind::call && e.label < calls.size()) ++calls[e.label];
  constexpr RegNum k_sp = 7;
  for (std::size_t i = 0; i + 1 < trace.instructions.size(); ++i) {
    const TracedInstruction &call = trace.instructions[i], &next = trace.instructions[i + 1];
    if (call.effects != 1 || next.effects == 0) continue;
    Effect& e = trace.effects[call.first_effect];
    if (e.kind != Effect::Kind::call || e.label >= calls.size() || calls[e.label] != 1) continue;
    if (trace.labels[e.label] != CodePlace{call.section, call.end} || trace.labels[e.label] != place_of(next)) continue;
    const Effect& takes = trace.effects[next.first_effect];
    const bool pops = takes.kind == Effect::Kind::pop && takes.value == 8;
    const bool loads = takes.kind == Effect::Kind::load && takes.base == k_sp && takes.value == 0;
    const bool drops = takes.kind == Effect::Kind::copy && takes.reg == k_sp && takes.base == k_sp && takes.value >= 8;
    if (pops || loads || drops) e.kind = Effect::Kind::push_code;
  }
}

}  // namespace

/// Appends the records, translated; effects and jump targets get new numbers.
void TraceRecorder::append_to(CodeTrace& out) const {
  if (out_of_memory_) throw std::bad_alloc();
  const std::size_t first_effect = out.effects.size();
  const auto first_targets = static_cast<std::int64_t>(out.jump_targets.size());
  for (const Written& written : sections_) {
    out.instructions.reserve(out.instructions.size() + written.instructions.size());
    for (const Recorded& i : written.instructions) out.instructions.push_back(translated(i, out.effects));
    out.data.insert(out.data.end(), written.data.begin(), written.data.end());
  }
  for (std::size_t i = first_effect; i < out.effects.size(); ++i)
    if (out.effects[i].kind == Effect::Kind::jump_indirect && out.effects[i].value >= 0)
      out.effects[i].value += first_targets;
  out.embedded.insert(out.embedded.end(), embedded_.begin(), embedded_.end());
  out.starts.insert(out.starts.end(), starts_.begin(), starts_.end());
  out.jump_targets.insert(out.jump_targets.end(), jump_targets_.begin(), jump_targets_.end());
  out.call_sites.insert(out.call_sites.end(), call_sites_.begin(), call_sites_.end());
  out.frame_handlers.insert(out.frame_handlers.end(), frame_handlers_.begin(), frame_handlers_.end());
}

Result<CodeTrace, Refusal> TraceRecorder::trace(std::span<const TraceRecorder* const> recorders,
                                                const ::asmjit::CodeHolder& code) {
  CodeTrace out;
  for (const TraceRecorder* recorder : recorders) recorder->append_to(out);
  if (!std::ranges::is_sorted(out.instructions, {}, by_place)) std::ranges::stable_sort(out.instructions, {}, by_place);
  std::ranges::stable_sort(out.data, {}, by_place);
  const auto in_section = [](const auto& pieces, std::uint32_t id) {
    const auto first = std::ranges::lower_bound(pieces, CodePlace{id, 0}, {}, by_place);
    return std::span(first, std::ranges::lower_bound(first, pieces.end(), CodePlace{id + 1, 0}, {}, by_place));
  };
  for (std::uint32_t id = 0; id < v::section_count(code); ++id) {
    const auto instructions = in_section(out.instructions, id);
    const Bytes bytes = v::section_bytes(code, id);
    if (!v::is_address_table(code, id))
      if (const auto unseen = find_unseen(id, bytes.size(), instructions, in_section(out.data, id))) return *unseen;
    if (const auto changed = find_changed(bytes, instructions)) return *changed;
  }
  std::ranges::stable_sort(out.embedded, {}, &EmbeddedLabel::place);
  out.labels.resize(v::label_count(code));
  for (LabelId id = 0; id < out.labels.size(); ++id) {
    const v::BoundLabel label = v::bound_label(code, id);
    if (!label.bound) continue;
    out.labels[id] = label.place();
    if (!label.name.empty()) out.starts.push_back({*out.labels[id], label.name, 0, false});
  }
  std::ranges::stable_sort(out.starts, {}, &ProcedureStart::place);
  for (const TracedCallSite& site : out.call_sites)
    for (const LabelId label : {site.begin, site.end, site.pad})
      if (label != k_no_label && (label >= out.labels.size() || !out.labels[label]))
        return Refusal{{0, 0}, {}, "a call site or its landing pad has a label that is not bound", {}};
  find_pushed_pcs(out);
  return out;
}

}  // namespace jitunwind::derivation

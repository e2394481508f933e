#include "jitunwind/adapters/asmjit/trace_recorder_p.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind::derivation {

namespace v = asmjit_version;

namespace {

/// The recorder that the next emitter gets: most programs have one emitter at a time.
constinit std::atomic<TraceRecorder*> spare_recorder{nullptr};

/// A check sum that depends on every bit, never 0.
std::uint32_t check_of(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t sum = bytes.size();
  for (const std::uint8_t byte : bytes) sum = std::rotl(sum, 9) ^ byte;
  return static_cast<std::uint32_t>(hash_with(0, sum) >> 32) | 1;
}

/// The first offset from `at` on at which the bytes differ; `size`: none.
std::size_t mismatch(const std::uint8_t* one, const std::uint8_t* other, std::size_t at, std::size_t size) noexcept {
  std::uint64_t word, other_word;
  for (; at + sizeof word <= size; at += sizeof word) {
    std::memcpy(&word, one + at, sizeof word);
    std::memcpy(&other_word, other + at, sizeof word);
    if (word != other_word) break;
  }
  while (at < size && one[at] == other[at]) ++at;
  return at;
}

/// asmjit fills in addresses when labels are bound and when the code gets its place.
bool is_patched_later(std::uint32_t instruction, std::span<const ::asmjit::Operand_> operands) noexcept {
  const bool goes_elsewhere = v::control_flow(instruction) != ::asmjit::InstControlFlow::kRegular;
  return std::ranges::any_of(operands, [&](const ::asmjit::Operand_& operand) {
    if (v::is_mem(operand)) return !v::has_base_register(operand);
    return v::is_label(operand) || (goes_elsewhere && v::is_imm(operand));
  });
}

}  // namespace

TraceRecorder* TraceRecorder::take() noexcept {
  TraceRecorder* const spare = spare_recorder.exchange(nullptr, std::memory_order_acquire);
  return spare ? spare : new (std::nothrow) TraceRecorder;
}

void TraceRecorder::give_back(TraceRecorder* recorder) noexcept {
  constexpr std::size_t k_most = 4096;
  recorder->reset();
  if (recorder->sections_.empty() || recorder->sections_.front().instructions.capacity() <= k_most)
    recorder = spare_recorder.exchange(recorder, std::memory_order_acq_rel);
  delete recorder;
}

bool TraceRecorder::Recorded::may_be_patched() const noexcept {
  return is_translated() ? form == Form::effects_of_patched : is_patched_later(mnemonic, operands());
}

void TraceRecorder::reset() noexcept {
  if (sections_.size() > 1) sections_.erase(sections_.begin() + 1, sections_.end());
  for (Written& written : sections_) {
    written.instructions.clear();
    written.data.clear();
    written.end = 0;
  }
  used_sections_ = 0;
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
  if (id >= sections_.size()) sections_.resize(id + 1);
  used_sections_ = std::max<std::size_t>(used_sections_, id + 1);
  written_last_ = &sections_[id];
  room_in_ = nullptr;
  return sections_[id];
}

/// Memory for an instruction that ends before `end`: twice as much as is needed, so that the next ones need no more.
TraceRecorder::Written& TraceRecorder::with_room(std::uint32_t id, std::uint32_t end) {
  constexpr std::size_t k_few = 64;
  Written& written = section(id);
  if (end + k_longest > written.bytes.size()) written.bytes.resize(2 * (end + k_longest));
  written.last_begin = static_cast<std::uint32_t>(written.bytes.size() - k_longest) + 1;
  if (const std::size_t count = written.instructions.size(); count == written.instructions.capacity())
    written.instructions.reserve(std::max(k_few, 2 * count));
  return written;
}

bool TraceRecorder::make_room(const ::asmjit::Section* section, CodePlace place) noexcept {
  bool is_last = false;
  guarded([&] { is_last = place.offset >= with_room(place.section, place.offset).end; });
  if (is_last) room_in_ = section;
  return is_last;
}

/// True when the instruction replaces an earlier one of the same length.
bool TraceRecorder::replace(Written& written, const Recorded& instruction) {
  const auto old = std::ranges::lower_bound(written.instructions, instruction.begin, {}, &Recorded::begin);
  if (old == written.instructions.end() || old->begin != instruction.begin || old->end != instruction.end) return false;
  *old = instruction;
  return true;
}

void TraceRecorder::add(CodePlace place, Bytes bytes, Recorded instruction) {
  instruction.begin = place.offset;
  instruction.end = place.offset + static_cast<std::uint32_t>(bytes.size());
  Written& written = with_room(place.section, instruction.end);
  std::ranges::copy(bytes, &written.bytes[place.offset]);
  if (replace(written, instruction)) return;
  written.instructions.push_back(instruction);
  written.end = std::max(written.end, instruction.end);
}

void TraceRecorder::instruction(CodePlace place, Bytes bytes, const ::asmjit::BaseInst& instruction,
                                std::span<const ::asmjit::Operand_> operands) noexcept {
  guarded([&] {
    Recorded one(0, 0, 0, Recorded::Form::effects);
    one.first_effect = static_cast<std::uint32_t>(effects_.size());
    append_effects(instruction, operands, effects_);
    one.mnemonic = static_cast<std::uint16_t>(v::instruction_id(instruction));
    one.count = static_cast<std::uint8_t>(effects_.size() - one.first_effect);
    const bool patched = is_patched_later(one.mnemonic, operands);
    one.form = patched ? Recorded::Form::effects_of_patched : Recorded::Form::effects;
    add(place, bytes, one);
  });
}

void TraceRecorder::instruction(CodePlace place, Bytes bytes, std::span<const ::asmjit::Operand> changes) noexcept {
  guarded([&] {
    Recorded one(0, 0, k_embedded, Recorded::Form::effects);
    one.first_effect = static_cast<std::uint32_t>(effects_.size());
    append_changes(changes, effects_);
    one.count = static_cast<std::uint8_t>(effects_.size() - one.first_effect);
    add(place, bytes, one);
  });
}

/// The instruction with effects behind those in `effects`.
TracedInstruction TraceRecorder::translated(std::uint32_t section, const Recorded& instruction,
                                            std::vector<Effect>& effects) const {
  const auto first = static_cast<std::uint32_t>(effects.size());
  if (instruction.is_translated()) {
    const auto known = effects_.begin() + instruction.first_effect;
    effects.insert(effects.end(), known, known + instruction.count);
  } else {
    append_effects(::asmjit::BaseInst(instruction.mnemonic), instruction.operands(), effects);
  }
  const Bytes bytes(&sections_[section].bytes[instruction.begin], instruction.end - instruction.begin);
  return {section,
          instruction.begin,
          instruction.end,
          first,
          static_cast<std::uint16_t>(effects.size() - first),
          instruction.mnemonic,
          instruction.may_be_patched() ? 0 : check_of(bytes)};
}

std::span<const Effect> TraceRecorder::effects_of(const Recorded& instruction) const {
  if (instruction.is_translated()) return std::span(effects_).subspan(instruction.first_effect, instruction.count);
  translated_now_.clear();
  append_effects(::asmjit::BaseInst(instruction.mnemonic), instruction.operands(), translated_now_);
  return translated_now_;
}

bool TraceRecorder::have_changed(const Written& written, Bytes section) noexcept {
  const std::size_t size = std::min(written.bytes.size(), section.size());
  for (std::size_t at = 0; (at = mismatch(written.bytes.data(), section.data(), at, size)) < size;) {
    // Data, which is no instruction, may have been filled in.
    const auto next = std::ranges::upper_bound(written.instructions, at, {}, &Recorded::end);
    if (next == written.instructions.end()) return false;
    if (next->begin <= at && !next->may_be_patched()) return true;
    at = next->begin <= at ? next->end : next->begin;
  }
  return false;
}

const TraceRecorder::Written* TraceRecorder::only_instructions() const noexcept {
  const bool only = used_sections_ == 1 && !out_of_memory_ && embedded_.empty() && jump_targets_.empty() &&
                    call_sites_.empty() && frame_handlers_.empty();
  return only ? &sections_.front() : nullptr;
}

void TraceRecorder::padding(CodePlace place, std::uint32_t end) noexcept {
  if (place.offset == end) return;
  guarded([&] {
    Written& written = with_room(place.section, end);
    written.instructions.push_back({place.offset, end, k_padding, Recorded::Form::effects_of_patched});
    written.instructions.back().first_effect = 0;
    written.end = std::max(written.end, end);
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
  if (!written_last_ || written_last_->instructions.empty()) return nullptr;
  Recorded& last = written_last_->instructions.back();
  if (!last.is_translated()) {
    last.first_effect = static_cast<std::uint32_t>(effects_.size());
    append_effects(::asmjit::BaseInst(last.mnemonic), last.operands(), effects_);
    last.form = last.may_be_patched() ? Recorded::Form::effects_of_patched : Recorded::Form::effects;
    last.count = static_cast<std::uint8_t>(effects_.size() - last.first_effect);
  }
  return last.count == 0 ? nullptr : &effects_[last.first_effect + last.count - 1u];
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
    if (i.bytes != 0 && i.end <= bytes.size() && check_of(bytes.subspan(i.begin, i.end - i.begin)) != i.bytes)
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
  for (std::uint32_t id = 0; id < used_sections_; ++id) {
    const Written& written = sections_[id];
    out.instructions.reserve(out.instructions.size() + written.instructions.size());
    for (const Recorded& i : written.instructions) out.instructions.push_back(translated(id, i, out.effects));
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
    if (!label.name.empty()) out.starts.push_back({*out.labels[id], std::string(label.name), 0, false});
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

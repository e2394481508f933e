// Records the output of one emitter, in the order of places, while it writes.
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// Exhausted memory makes the trace incomplete, and later queries return an error; nothing is thrown into the emitter.
class TraceRecorder {
 public:
  /// A recorder of nothing, with the memory of one that was given back. Null without memory. Both are thread-safe.
  static TraceRecorder* take() noexcept;
  static void give_back(TraceRecorder* recorder) noexcept;
  /// Forgets everything but the memory.
  void reset() noexcept;

  /// The bytes of an instruction as written.
  using Bytes = std::span<const std::uint8_t>;
  void instruction(CodePlace place, Bytes bytes, const ::asmjit::BaseInst& instruction,
                   std::span<const ::asmjit::Operand_> operands) noexcept;
  /// Records one instruction that asmjit does not support: it continues at the next instruction and does not touch the
  /// stack.
  void instruction(CodePlace place, Bytes bytes, std::span<const ::asmjit::Operand> changes) noexcept;
  void padding(CodePlace place, std::uint32_t end) noexcept;
  void data(CodePlace place, std::uint32_t end) noexcept;
  void embedded_label(CodePlace place, LabelId label) noexcept;
  void start(const ProcedureStart& start) noexcept;
  /// Declares that the callee of the last call pops so many bytes of arguments.
  void callee_pops(std::int64_t bytes) noexcept;
  /// Declares the targets of the last indirect jump; empty: a place outside this code.
  void jumps_to(std::vector<LabelId> targets) noexcept;
  /// Null without memory; else valid until reset().
  TracedCallSite* call_site(LabelId begin, LabelId end, LabelId pad) noexcept;
  void reason(TracedCallSite& site, const std::function<void(x86_64::Builder&)>& say) noexcept;
  void frame_handler(CodePlace place, FrameHandler handler) noexcept;

  /// True when nothing was written.
  bool is_idle() const noexcept { return used_sections_ == 0 && !out_of_memory_; }

  /// An instruction, which is translated to effects when somebody asks for them. Until then its operands are kept.
  struct Recorded {
    enum class Form : std::uint8_t { operands, effects, effects_of_patched };
    /// Leaves the operands and offsets as they are: zeros would take as long as what is written.
    Recorded() noexcept {}  // NOLINT
    Recorded(std::uint32_t its_begin, std::uint32_t its_end, std::uint16_t its_mnemonic, Form its_form) noexcept
        : kept{}, begin(its_begin), end(its_end), mnemonic(its_mnemonic), form(its_form) {}

    std::array<::asmjit::Operand_, 3> kept;
    std::uint32_t begin;  ///< offsets in bytes from the start of its section
    std::uint32_t end;
    std::uint32_t first_effect;  // of those in effects_, if it is translated
    std::uint16_t mnemonic;
    std::uint8_t count = 0;  ///< of effects
    Form form = Form::operands;

    bool is_translated() const noexcept { return form != Form::operands; }
    /// Precondition: not translated.
    std::span<const ::asmjit::Operand_> operands() const noexcept {
      std::size_t count = 0;
      while (count < kept.size() && !asmjit_version::is_none(kept[count])) ++count;
      return {kept.data(), count};
    }
    /// Whether asmjit itself fills in some of its bytes later.
    bool may_be_patched() const noexcept;
  };
  /// Begins the record of an instruction without prefixes or other options, whose bytes are written next. False: there
  /// is no room for it, which make_room() changes.
  bool begin(const ::asmjit::Section* section, std::size_t offset, std::uint32_t id, const ::asmjit::Operand_& o0,
             const ::asmjit::Operand_& o1, const ::asmjit::Operand_& o2) noexcept;
  /// Makes room for an instruction in its section. False: it is not the last one there, or there is no memory.
  [[gnu::cold]] bool make_room(const ::asmjit::Section* section, CodePlace place) noexcept;
  /// Ends the record, for an emitter whose buffer has these bounds. An instruction without bytes was not written.
  void end(const asmjit_version::WrittenBuffer& buffer) noexcept;
  /// Records in the order in which they were written.
  struct Written {
    std::vector<Recorded> instructions;
    std::vector<TracedData> data;
    std::vector<std::uint8_t> bytes;  ///< those of the instructions as written, by their offsets
    std::uint32_t end = 0;            ///< of the last instruction
    std::uint32_t last_begin = 0;     ///< an instruction may begin here without more memory for bytes
  };
  /// The records, if they are of one section and have neither landing pads, handlers nor tables of labels.
  const Written* only_instructions() const noexcept;
  const std::vector<ProcedureStart>& starts() const noexcept { return starts_; }
  /// Valid until the next call; one thread at a time.
  std::span<const Effect> effects_of(const Recorded& instruction) const;
  /// Whether an instruction has other bytes in its section than were written. Precondition: the records are in the
  /// order of their places.
  static bool have_changed(const Written& written, Bytes section) noexcept;

  /// The combined trace of all recorders, with labels as `code` has them. Error: bytes of a section of `code` were not
  /// recorded, were written twice, or differ from those of the recorded instruction.
  static Result<CodeTrace, Refusal> trace(std::span<const TraceRecorder* const> recorders,
                                          const ::asmjit::CodeHolder& code);

 private:
  static constexpr std::size_t k_longest = 16;  // an instruction has 15 bytes at most: Intel SDM, 2.3.11

  template <class Record>
  void guarded(Record record) noexcept;
  Written& section(std::uint32_t id);
  Written& with_room(std::uint32_t id, std::uint32_t end);
  void add(CodePlace place, Bytes bytes, Recorded instruction);
  static bool replace(Written& written, const Recorded& instruction);
  TracedInstruction translated(std::uint32_t section, const Recorded& instruction, std::vector<Effect>& effects) const;
  void append_to(CodeTrace& out) const;
  Effect* last_effect();

  std::vector<Written> sections_;  // and memory of former ones
  std::size_t used_sections_ = 0;
  Written* written_last_ = nullptr;             // the one that was written to last
  const ::asmjit::Section* room_in_ = nullptr;  // asmjit's own of written_last_, if begin() may write there
  std::vector<Effect> effects_;
  mutable std::vector<Effect> translated_now_;  // of effects_of()
  std::vector<EmbeddedLabel> embedded_;
  std::vector<ProcedureStart> starts_;
  std::vector<std::vector<LabelId>> jump_targets_;
  std::list<TracedCallSite> call_sites_;
  std::vector<TracedFrameHandler> frame_handlers_;
  bool out_of_memory_ = false;
};

inline bool TraceRecorder::begin(const ::asmjit::Section* section, std::size_t offset, std::uint32_t id,
                                 const ::asmjit::Operand_& o0, const ::asmjit::Operand_& o1,
                                 const ::asmjit::Operand_& o2) noexcept {
  Written* const last = written_last_;
  if (section != room_in_ || !last || offset < last->end || offset >= last->last_begin ||
      last->instructions.size() == last->instructions.capacity()) [[unlikely]]
    return false;
  Recorded& one = last->instructions.emplace_back();
  one.begin = static_cast<std::uint32_t>(offset);
  one.mnemonic = static_cast<std::uint16_t>(id);
  // gcc assigns operands a member at a time; these are copied as a whole.
  const std::array<const ::asmjit::Operand_*, 3> all{&o0, &o1, &o2};
  for (std::size_t i = 0; i < all.size(); ++i)
    std::memcpy(static_cast<void*>(&one.kept[i]), static_cast<const void*>(all[i]), sizeof one.kept[i]);
  return true;
}

inline void TraceRecorder::end(const asmjit_version::WrittenBuffer& buffer) noexcept {
  Written& last = *written_last_;
  Recorded& one = last.instructions.back();
  const std::uint8_t* const bytes = buffer.data + one.begin;
  if (buffer.next == bytes) return last.instructions.pop_back();
  one.end = last.end = static_cast<std::uint32_t>(buffer.next - buffer.data);
  // A copy of a fixed size is one instruction. The bytes behind those that were written are not read.
  if (buffer.end - bytes >= static_cast<std::ptrdiff_t>(k_longest)) [[likely]]
    std::memcpy(&last.bytes[one.begin], bytes, k_longest);
  else
    std::memcpy(&last.bytes[one.begin], bytes, static_cast<std::size_t>(buffer.next - bytes));
}

}  // namespace jitunwind::derivation

// Records the output of one emitter, in the order of places, while it writes.
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <bit>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind::derivation {

/// A check sum that depends on every bit, never 0. It is made of bytes, because a read of a word waits for the writes
/// of single bytes just before it.
inline std::uint32_t check_of(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t sum = bytes.size();
  for (const std::uint8_t byte : bytes) sum = std::rotl(sum, 9) ^ byte;
  return static_cast<std::uint32_t>(hash_with(0, sum) >> 32) | 1;
}

/// Exhausted memory makes the trace incomplete, and later queries return an error; nothing is thrown into the emitter.
class TraceRecorder {
 public:
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
  bool is_idle() const noexcept { return sections_.empty() && !out_of_memory_; }

  /// An instruction, which is translated to effects when somebody asks for them. Until then its operands are kept.
  struct Recorded : TracedInstruction {
    /// Plus the number of operands, in place of a number of effects.
    static constexpr std::uint16_t k_untranslated = 0xff00;
    std::array<::asmjit::Operand_, 3> kept;

    bool is_translated() const noexcept { return effects < k_untranslated; }
    /// Precondition: not translated.
    std::span<const ::asmjit::Operand_> operands() const noexcept {
      return {kept.data(), effects - std::size_t{k_untranslated}};
    }
  };
  /// Begins the record of an instruction without prefixes or other options, whose bytes are written next. False: it is
  /// not the next one of its section, or there is no memory at hand.
  bool begin(CodePlace place, std::uint32_t id, const ::asmjit::Operand_& o0, const ::asmjit::Operand_& o1,
             const ::asmjit::Operand_& o2) noexcept;
  /// Ends the record. An instruction without bytes was not written.
  void end(Bytes bytes) noexcept;
  /// Records in the order in which they were written.
  struct Written {
    std::vector<Recorded> instructions;
    std::vector<TracedData> data;
  };
  /// The records, if they are of one section and have neither landing pads, handlers nor tables of labels.
  const Written* only_instructions() const noexcept;
  const std::vector<ProcedureStart>& starts() const noexcept { return starts_; }
  /// Valid until the next call; `memory` keeps effects that are translated now.
  std::span<const Effect> effects_of(const Recorded& instruction, std::vector<Effect>& memory) const;
  /// Whether the instruction has other bytes in its section than were written. Precondition: it is inside.
  static bool has_changed(const Recorded& instruction, Bytes section) noexcept;

  /// The combined trace of all recorders, with labels as `code` has them. Error: bytes of a section of `code` were not
  /// recorded, were written twice, or differ from those of the recorded instruction.
  static Result<CodeTrace, Refusal> trace(std::span<const TraceRecorder* const> recorders,
                                          const ::asmjit::CodeHolder& code);

 private:
  template <class Record>
  void guarded(Record record) noexcept;
  Written& section(std::uint32_t id);
  void add(const Recorded& instruction);
  bool replace(const Recorded& instruction);
  TracedInstruction translated(const Recorded& instruction, std::vector<Effect>& effects) const;
  void append_to(CodeTrace& out) const;
  Effect* last_effect();

  std::vector<Written> sections_;
  std::vector<Recorded>* written_last_ = nullptr;  // in last_section_
  std::vector<Effect> effects_;
  std::vector<EmbeddedLabel> embedded_;
  std::vector<ProcedureStart> starts_;
  std::vector<std::vector<LabelId>> jump_targets_;
  std::list<TracedCallSite> call_sites_;
  std::vector<TracedFrameHandler> frame_handlers_;
  std::uint32_t last_section_ = 0;
  bool out_of_memory_ = false;
};

inline bool TraceRecorder::begin(CodePlace place, std::uint32_t id, const ::asmjit::Operand_& o0,
                                 const ::asmjit::Operand_& o1, const ::asmjit::Operand_& o2) noexcept {
  namespace v = asmjit_version;
  std::vector<Recorded>* const all = written_last_;
  if (!all || last_section_ != place.section || all->empty() || all->size() == all->capacity() ||
      all->back().begin >= place.offset)
    return false;
  const int count = v::is_none(o0) ? 0 : v::is_none(o1) ? 1 : v::is_none(o2) ? 2 : 3;
  Recorded& one = all->emplace_back();
  one.section = place.section;
  one.begin = place.offset;
  one.effects = static_cast<std::uint16_t>(Recorded::k_untranslated + count);
  one.mnemonic = static_cast<std::uint16_t>(id);
  one.kept = {o0, o1, o2};
  return true;
}

inline void TraceRecorder::end(Bytes bytes) noexcept {
  if (bytes.empty()) return written_last_->pop_back();
  Recorded& one = written_last_->back();
  one.end = one.begin + static_cast<std::uint32_t>(bytes.size());
  one.bytes = check_of(bytes);
}

}  // namespace jitunwind::derivation

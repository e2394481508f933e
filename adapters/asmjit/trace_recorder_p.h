// Records the output of one emitter, in the order of places, while it writes.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::derivation {

/// Exhausted memory makes the trace incomplete, and later queries return an error; nothing is thrown into the emitter.
class TraceRecorder {
 public:
  void reset() noexcept;

  /// `bytes`: the bytes of the instruction as written.
  void instruction(CodePlace place, std::span<const std::uint8_t> bytes, const ::asmjit::BaseInst& instruction,
                   std::span<const ::asmjit::Operand_> operands) noexcept;
  /// Records one instruction that asmjit does not support: it continues at the next instruction and does not touch the
  /// stack.
  void instruction(CodePlace place, std::span<const std::uint8_t> bytes,
                   std::span<const ::asmjit::Operand> changes) noexcept;
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
  /// The combined trace of all recorders, with labels as `code` has them. Error: bytes of a section of `code` were not
  /// recorded, were written twice, or differ from those of the recorded instruction.
  static Result<CodeTrace, Refusal> trace(std::span<const TraceRecorder* const> recorders,
                                          const ::asmjit::CodeHolder& code);

 private:
  /// Records in the order in which they were written.
  struct Written {
    std::vector<TracedInstruction> instructions;
    std::vector<TracedData> data;
  };

  template <class Record>
  void guarded(Record record) noexcept;
  Written& section(std::uint32_t id);
  void add(CodePlace place, std::uint32_t end, std::uint16_t mnemonic, std::uint32_t hash, std::size_t first_effect);
  bool replace(const TracedInstruction& instruction);
  void append_to(CodeTrace& out) const;
  TracedInstruction* last_instruction();

  std::vector<Written> sections_;
  std::vector<Effect> effects_;
  std::vector<EmbeddedLabel> embedded_;
  std::vector<ProcedureStart> starts_;
  std::vector<std::vector<LabelId>> jump_targets_;
  std::list<TracedCallSite> call_sites_;
  std::vector<TracedFrameHandler> frame_handlers_;
  std::uint32_t last_section_ = 0;
  bool out_of_memory_ = false;
};

}  // namespace jitunwind::derivation

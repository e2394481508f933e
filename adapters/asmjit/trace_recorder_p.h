// Keeps what one emitter wrote, in the order of places, while it writes.
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

/// Memory that runs out while recording makes the trace incomplete, and what is asked of it later an error; nothing is
/// thrown into the emitter.
class TraceRecorder {
 public:
  void reset() noexcept;

  /// `bytes`: those that were written.
  void instruction(CodePlace place, std::span<const std::uint8_t> bytes, const ::asmjit::BaseInst& instruction,
                   std::span<const ::asmjit::Operand_> operands) noexcept;
  /// Of bytes that asmjit has no name for: one instruction that goes on behind itself and leaves the stack alone.
  void instruction(CodePlace place, std::span<const std::uint8_t> bytes,
                   std::span<const ::asmjit::Operand> changes) noexcept;
  void padding(CodePlace place, std::uint32_t end) noexcept;
  void data(CodePlace place, std::uint32_t end) noexcept;
  void embedded_label(CodePlace place, LabelId label) noexcept;
  void start(const ProcedureStart& start) noexcept;
  /// The call written last is of a procedure that pops so many bytes of arguments.
  void callee_pops(std::int64_t bytes) noexcept;
  /// The indirect jump written last goes to one of these; empty: out of this code.
  void jumps_to(std::vector<LabelId> targets) noexcept;
  /// Null without memory; else valid until reset().
  TracedCallSite* call_site(LabelId begin, LabelId end, LabelId pad) noexcept;
  void reason(TracedCallSite& site, const std::function<void(x86_64::Builder&)>& say) noexcept;
  void frame_handler(CodePlace place, FrameHandler handler) noexcept;

  /// Nothing was written.
  bool is_idle() const noexcept { return sections_.empty() && !out_of_memory_; }
  /// What all of them recorded, labels as `code` has them. An error when bytes of a section of `code` were not seen
  /// being written, were written twice, or are others than those of the instruction that was.
  static Result<CodeTrace, Refusal> trace(std::span<const TraceRecorder* const> recorders,
                                          const ::asmjit::CodeHolder& code);

 private:
  /// In the order in which they were written.
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

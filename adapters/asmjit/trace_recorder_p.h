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

  /// Everything that was recorded, labels as `code` has them. An error when bytes of a section of `code` were not seen
  /// being written, were written twice, or are others than those of the instruction that was.
  Result<CodeTrace, Refusal> trace(const ::asmjit::CodeHolder& code) const;

 private:
  struct Written {
    std::vector<TracedInstruction> instructions;
    std::vector<TracedData> data;
    std::uint32_t end = 0;
    std::optional<Refusal> unseen;
  };

  template <class Record>
  void guarded(Record record) noexcept;
  Written& section(CodePlace place, std::uint32_t end);
  bool replace(const TracedInstruction& instruction);
  static std::optional<Refusal> find_changed(const ::asmjit::CodeHolder& code, std::uint32_t section,
                                             const Written& written);
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

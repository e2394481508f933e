// Follows a trace along every path from every procedure's first instruction, and says what holds at each boundary.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"

namespace jitunwind::derivation {

/// A contiguous piece of code with one description: from one start to the next, trailing data left out.
struct TracedProcedure {
  std::string name;
  std::uint32_t section = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::size_t first = 0;  ///< instructions [first, last) of the trace
  std::size_t last = 0;
  std::optional<Refusal> refusal;
};

class FrameAnalysis {
 public:
  /// The trace must outlive the analysis.
  FrameAnalysis(const CodeTrace& trace, const Arch& arch);

  /// Finds procedures and what holds in them.
  void run();
  const std::vector<TracedProcedure>& procedures() const noexcept { return procedures_; }

  struct Boundary {
    std::size_t instruction;  ///< the one behind it
    const FrameState* state;  ///< null where no path leads: such code never runs, since nothing names it
    bool changed;             ///< false: the state is that of the boundary visited before
  };
  /// The instructions of a procedure without refusal, in order. False from the visitor ends the visit, and is the
  /// result.
  using Visitor = std::function<bool(const Boundary&)>;
  bool visit(const TracedProcedure& procedure, const Visitor& visitor);

  /// Does the instruction call?
  bool calls(std::size_t instruction) const;

  /// Places of labels that are bound.
  CodePlace place_of_label(LabelId label) const { return *trace_.labels[label]; }

 private:
  using Index = std::size_t;
  static constexpr Index k_nowhere = SIZE_MAX;

  Index index_of(CodePlace place) const;
  Index index_of(LabelId label) const;
  std::span<const Effect> effects_of(Index i) const;
  bool falls_into(Index i, Index next) const;

  bool is_padding(Index i) const;

  void find_heads();
  void start(Index i, RegSet preserved);
  void restart();
  void start_declared();
  bool start_hinted();
  void solve();
  void follow_run(Index head);
  bool execute(Index i, FrameState& state, std::string& why);
  void flow(Index from, Index to, const FrameState& state);
  void land(Index call, FrameState state);
  void flow_to_label(Index from, LabelId to, const FrameState& state);
  bool leave(Index i, const Effect& effect, const FrameState& state);
  void leave_indirectly(Index i, const Effect& effect, const FrameState& state);
  bool has_targets(const Effect& effect) const;
  std::vector<LabelId> targets_of(Index jump, const Effect& effect) const;
  std::vector<LabelId> table_at(CodePlace place) const;
  std::vector<LabelId> tables_near(Index jump) const;
  std::int64_t popped_by(LabelId callee);
  void refuse(Index i, std::string reason);
  bool keeps_promises(const FrameState& state, std::string& why) const;
  bool keeps_registers(const FrameState& state, std::string& why) const;

  void cut_procedures();
  TracedProcedure cut(Index first, Index last) const;
  std::set<Index> unreached_labels() const;

  const CodeTrace& trace_;
  const Arch& arch_;
  std::vector<const TracedCallSite*> sites_;  // in the order of their code
  std::vector<bool> is_head_;
  std::vector<bool> reached_;
  std::map<Index, RegSet> starts_;
  bool restart_ = false;            // a start was found in code that had been followed as something else
  std::map<Index, FrameState> in_;  // by head
  std::set<Index> work_;
  std::map<LabelId, std::int64_t> popped_;
  std::map<Index, Refusal> refusals_;  // the first of each instruction
  std::vector<TracedProcedure> procedures_;
};

}  // namespace jitunwind::derivation

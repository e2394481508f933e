// Follows a trace along every path from every procedure's first instruction, and computes the frame state at each
// boundary.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"

namespace jitunwind::derivation {

/// A contiguous piece of code with one description: from one start to the next, without trailing data.
struct TracedProcedure {
  std::string name;
  std::uint32_t section = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::size_t first = 0;  ///< instructions [first, last) of the trace
  std::size_t last = 0;
  std::optional<Refusal> refusal;
};

/// An observer of the states between one head and the next.
class PathWatcher {
 public:
  virtual ~PathWatcher() = default;
  virtual void begins(std::size_t head, const FrameState& state) = 0;
  virtual void executed(std::size_t instruction, const FrameState& state) = 0;
  virtual void flows(std::size_t to, const FrameState& state) = 0;
};

class LostValues;
struct LostValue;

class FrameAnalysis {
 public:
  /// The trace must outlive the analysis.
  FrameAnalysis(const CodeTrace& trace, const Arch& arch);
  ~FrameAnalysis();

  /// Finds the procedures and their frame states.
  void run();
  const std::vector<TracedProcedure>& procedures() const noexcept { return procedures_; }

  struct Boundary {
    std::size_t instruction;  ///< the one after the boundary
    const FrameState* state;  ///< null if no path leads here: such code never runs, since nothing names it
    bool changed;             ///< false: the state is that of the boundary visited before
  };
  /// Visits the instructions of a procedure without refusal, in order. A visitor that returns false ends the visit; its
  /// result is the result.
  using Visitor = std::function<bool(const Boundary&)>;
  bool visit(const TracedProcedure& procedure, const Visitor& visitor);

  /// Explains why there is no row at a boundary that a path leads to: a value is lost. `reg` is the return address
  /// column, SP (which stands for the CFA), or a register; `reason` may be empty for the last.
  Refusal lost_at(const Boundary& at, RegNum reg, std::string reason);

  // Functions that follow paths a second time, after run(). Heads are instructions that several paths may lead to.
  void watch(std::size_t head, PathWatcher& watcher);
  std::optional<std::size_t> head_of(std::size_t instruction) const;
  const FrameState* state_at_head(std::size_t head) const;
  std::vector<std::size_t> starts() const;
  bool starts_at(std::size_t instruction) const { return starts_.contains(instruction); }

  /// Whether the instruction calls.
  bool calls(std::size_t instruction) const;

  /// Place of a label. Precondition: it is bound.
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
  RegNum equal_to_sp(Index branch, Effect::Condition condition) const;
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
  struct Broken {
    std::string what;
    RegNum lost = k_no_reg;  // a register, the return address column, or SP
  };
  void refuse(Index i, std::string reason, RegNum lost = k_no_reg);
  void refuse(Index i, const std::string& deed, const Broken& promise) { refuse(i, deed + promise.what, promise.lost); }
  std::optional<Broken> broken_promise(const FrameState& state) const;
  std::optional<Broken> broken_register(const FrameState& state) const;
  LostValues& lost_values();
  void explain(Index i, RegNum lost, Refusal& refusal);
  std::vector<Refusal::Cause> causes_of(const LostValue& how, RegNum lost, const FrameState& state) const;
  Refusal::Cause cause(Index i, std::string deed) const;

  void cut_procedures();
  TracedProcedure cut(Index first, Index last) const;
  std::set<Index> unreached_labels() const;

  const CodeTrace& trace_;
  const Arch& arch_;
  std::vector<const TracedCallSite*> sites_;  // in the order of their code
  std::vector<bool> is_head_;
  std::vector<bool> reached_;
  std::map<Index, RegSet> starts_;
  bool restart_ = false;            // a start was found in code that was followed as part of another procedure
  std::map<Index, FrameState> in_;  // by head
  std::set<Index> work_;
  std::map<LabelId, std::int64_t> popped_;
  struct Refused {
    Refusal refusal;
    RegNum lost;
  };
  std::map<Index, Refused> refusals_;  // the first of each instruction
  PathWatcher* watcher_ = nullptr;     // the analysis decides nothing while a watcher is set
  std::unique_ptr<LostValues> lost_;
  std::vector<TracedProcedure> procedures_;
};

}  // namespace jitunwind::derivation

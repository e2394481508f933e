// Finds the instructions that lost the values a procedure owes its caller. After a refusal, every path is followed a
// second time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"

namespace jitunwind::derivation {

/// The fate of one register's value at entry, on a path to some place.
struct LostValue {
  static constexpr std::size_t k_nowhere = SIZE_MAX;
  std::size_t changed = k_nowhere;  ///< the instruction since which the register holds another value
  std::size_t lost = k_nowhere;     ///< the instruction since which no place holds the value
  bool lost_by_meeting = false;     ///< lost before `lost` instead, where paths merge that keep it in different places
  /// The merge of paths on which some copies are missing, if no copy was made since. The register itself still holds
  /// the value.
  std::size_t copies_end = k_nowhere;
  bool some_had_none = false;  ///< some of these paths had no copy
};

class LostValues final : public PathWatcher {
 public:
  explicit LostValues(FrameAnalysis& analysis);

  /// The fate of a register before an instruction that is reached.
  LostValue find(std::size_t instruction, RegNum reg);
  /// The state there; none: no path leads there. Valid after find().
  const std::optional<FrameState>& state() const noexcept { return found_state_; }

  void begins(std::size_t head, const FrameState& state) override;
  void executed(std::size_t instruction, const FrameState& state) override;
  void flows(std::size_t to, const FrameState& state) override;

 private:
  using All = std::array<LostValue, k_tracked_registers>;
  void look(std::size_t next, const FrameState& state);
  bool copies_meet(RegNum reg, bool had_one, std::size_t to, LostValue& at) const;

  FrameAnalysis& analysis_;
  std::map<std::size_t, All> at_head_;
  std::set<std::size_t> work_;
  All now_{};
  RegSet in_place_ = 0;  // at the preceding boundary
  RegSet held_ = 0;
  std::size_t wanted_ = LostValue::k_nowhere;
  All found_{};
  std::optional<FrameState> found_state_;
};

}  // namespace jitunwind::derivation

// Where values were lost that a procedure owes its caller: found once something was refused, by following every path
// once more.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"

namespace jitunwind::derivation {

/// Of one register's value at entry, on a way that leads to some place.
struct LostValue {
  static constexpr std::size_t k_nowhere = SIZE_MAX;
  std::size_t changed = k_nowhere;  ///< the instruction since which the register holds something else
  std::size_t lost = k_nowhere;     ///< the instruction since which nothing holds it
  bool lost_by_meeting = false;     ///< rather in front of `lost`, where paths meet that keep it in different places
  /// Where paths meet of which some have copies that the others have not there, and none was made since. The register
  /// held it yet.
  std::size_t copies_end = k_nowhere;
  bool some_had_none = false;  ///< of these paths
};

class LostValues final : public PathWatcher {
 public:
  explicit LostValues(FrameAnalysis& analysis);

  /// In front of an instruction that is reached.
  LostValue find(std::size_t instruction, RegNum reg);
  /// What is known there; none: no path leads there. Valid behind find().
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
  RegSet in_place_ = 0;  // at the boundary in front
  RegSet held_ = 0;
  std::size_t wanted_ = LostValue::k_nowhere;
  All found_{};
  std::optional<FrameState> found_state_;
};

}  // namespace jitunwind::derivation

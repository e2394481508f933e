// Chooses the directives that lead from one row to the next (docs/directives.md), and simulates their effect on the
// state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"
#include "jitunwind/builders/draft/procedure_draft.h"
#include "jitunwind/builders/draft/row_pool_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::derivation {

/// The row and SP from `offset` on, up to the next step.
struct FrameStep {
  std::uint32_t offset = 0;       ///< offset in the procedure
  std::uint32_t instruction = 0;  ///< offset of the preceding instruction
  Value sp;
  const FrameRow* row = nullptr;  ///< in a RowPool: another address is another row
};

class DirectiveWriter {
 public:
  explicit DirectiveWriter(const Arch& arch);

  /// Adds steps in ascending order, the first at offset 0. False: directives cannot express the step.
  bool add(const FrameStep& step);

  struct Placed {
    DraftDirective directive;
    std::uint32_t offset = 0;       ///< takes effect here; 0: at the start
    std::uint32_t instruction = 0;  ///< begin of its instruction
    bool releases = false;          ///< its instruction only raises SP
  };
  /// The directives in the order of their offsets.
  std::vector<Placed> take();
  /// True when SP at the end, a return, is SP at entry.
  bool balanced() const noexcept;

 private:
  /// The state after the directives so far; docs/directives.md "Frame state".
  struct Machine {
    std::optional<std::int64_t> sp;  ///< CFA - SP; none: unknown
    BaseId base = k_cfa_base;        ///< base of SP while it is unknown
    std::int64_t base_offset = 0;
    RegNum fp = k_no_reg;
    std::int64_t fp_offset = 0;  ///< CFA - fp
    bool has_slot = false;
    std::int64_t slot = 0;         ///< distance of the slot that holds a copy of SP to the base
    std::int64_t slot_offset = 0;  ///< CFA - that copy
    std::array<RegRule, 17> rules{};
    RegSet ruled = 0;  ///< registers with a specified rule; it may contain others

    void put(RegNum reg, const RegRule& rule) noexcept {
      rules[reg] = rule;
      ruled |= set_of(reg);
    }
  };
  /// A state and its first occurrence.
  struct Known {
    std::uint32_t offset;
    std::uint32_t instruction;
    Machine machine;
    std::optional<std::int64_t> label;
  };
  struct StateHash {
    std::size_t operator()(const std::pair<const FrameRow*, Value>& state) const noexcept {
      const auto row = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(state.first));
      return hash_with(hash_with(row, state.second.base), static_cast<std::uint64_t>(state.second.offset));
    }
  };

  bool diff(const FrameStep& step);
  bool move_sp(const FrameStep& step);
  bool change_cfa(const FrameStep& step);
  bool change_rules(const FrameStep& step);
  bool change_rule(RegNum reg, const RegRule& wanted);
  void release(std::optional<std::int64_t> old);
  bool copy(const FrameStep& step);
  void say(const DraftDirective& directive) { group_.push_back(directive); }

  const Arch& arch_;
  Machine machine_;
  std::vector<DraftDirective> group_;
  bool raises_sp_ = false;
  std::unordered_map<std::pair<const FrameRow*, Value>, Known, StateHash> known_;  // by row and SP
  std::vector<Placed> placed_;
  std::int64_t labels_ = 0;
};

}  // namespace jitunwind::derivation

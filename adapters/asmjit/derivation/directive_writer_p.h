// Which directives lead from one row to the next (docs/directives.md), kept in step with what they make of the state.
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

/// What holds from `offset` on, up to the next step.
struct FrameStep {
  std::uint32_t offset = 0;       ///< in the procedure
  std::uint32_t instruction = 0;  ///< offset of the instruction in front of it
  Value sp;
  const FrameRow* row = nullptr;  ///< in a RowPool: others are other rows
};

class DirectiveWriter {
 public:
  explicit DirectiveWriter(const Arch& arch);

  /// Steps in ascending order, the first at offset 0. False: directives cannot say it.
  bool add(const FrameStep& step);

  struct Placed {
    DraftDirective directive;
    std::uint32_t offset = 0;       ///< in force from here on; 0: from the start
    std::uint32_t instruction = 0;  ///< its instruction begins here
    bool releases = false;          ///< its instruction does nothing but raise SP
  };
  /// In the order of their offsets.
  std::vector<Placed> take();
  /// The procedure ends as it began: at a return, SP is where it was.
  bool balanced() const noexcept;

 private:
  /// The state that directives have led to; docs/directives.md "Frame state".
  struct Machine {
    std::optional<std::int64_t> sp;  ///< CFA - SP; none: unknown
    BaseId base = k_cfa_base;        ///< of SP while it is unknown
    std::int64_t base_offset = 0;
    RegNum fp = k_no_reg;
    std::int64_t fp_offset = 0;  ///< CFA - fp
    bool has_slot = false;
    std::int64_t slot = 0;         ///< place of the copy of SP, from the base
    std::int64_t slot_offset = 0;  ///< CFA - that copy
    std::array<RegRule, 17> rules{};
    RegSet ruled = 0;  ///< those of registers whose rule is specified, and may be of others

    void put(RegNum reg, const RegRule& rule) noexcept {
      rules[reg] = rule;
      ruled |= set_of(reg);
    }
  };
  /// A state that there was, where it was for the first time.
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

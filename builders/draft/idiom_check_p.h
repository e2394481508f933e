// Checks idioms for combinations that no instructions can have, whatever their directives are: two instructions in the
// same bytes, two registers in one slot, a register saved twice, or one popped from another one's slot.
#pragma once

#include <cstdint>
#include <vector>

#include "jitunwind/builders/draft/draft_record_p.h"

namespace jitunwind {

/// Hint for a draft that releases a frame twice.
inline constexpr const char* k_early_return_hint =
    "; behind an early return the frame is there again: remember() in front of its epilogue, restore() with its ret";

/// Follows the idioms of a draft in the order of their code, as far as SP's distance to the caller's frame is known.
/// Idioms between directives, in explicit regions, are checked for their bytes alone.
class IdiomCheck {
 public:
  explicit IdiomCheck(const DraftRecord& draft);
  std::vector<Finding> run() &&;

 private:
  using Placed = DraftRecord::Placed;

  /// The caller's value of a register is in memory at CFA + offset, or in another register.
  struct Saved {
    RegNum reg;
    std::uint32_t said;
    std::optional<std::int64_t> offset;
    RegNum in = k_no_reg;
  };
  /// The register holds its caller's value again.
  struct Restored {
    RegNum reg;
    std::uint32_t said;
    bool with_slot;  ///< its slot was released, which need not mean that the register was read
  };
  struct State {
    std::optional<std::int64_t> depth;  // CFA - SP
    RegNum fp = k_no_reg;
    std::optional<std::int64_t> fp_depth;
    std::vector<Saved> saved;
    std::vector<Restored> restored;
  };

  void check_bytes();
  void follow(const DraftRecord::Region& region);
  void check_calls_up_to(std::int64_t end);
  void follow_instruction(std::span<const Placed* const> directives);
  void move_sp(std::span<const Placed* const> directives);
  void check_pop(std::uint32_t said);
  void check_reload(std::uint32_t said);
  void check_return_address(std::uint32_t said);
  void check_left(std::uint32_t said);
  void release(std::optional<std::int64_t> depth_before, std::uint32_t said);
  void save(const Placed& directive);
  void move(const DraftDirective& directive, std::uint32_t said);
  void restore(const Saved& saved, std::uint32_t said, bool with_slot = false);
  std::string not_saved(RegNum reg) const;
  bool is_preserved(RegNum reg) const;
  void save_at(RegNum reg, std::optional<std::int64_t> offset, std::uint32_t said);
  std::int64_t place(const Instruction& at, std::int64_t offset) const;
  const Saved* saved_at(std::int64_t offset) const;
  std::string text(std::uint32_t said) const { return draft_.said[said - 1].text(arch_); }
  const char* name_of(RegNum reg) const;
  [[gnu::cold]] void refuse(ErrorCode code, std::uint32_t said, const std::string& reason);

  const DraftRecord& draft_;
  const Arch& arch_;
  State state_;
  std::vector<std::pair<std::int64_t, State>> remembered_;
  std::vector<Instruction> calls_;  // in the order of their code
  std::size_t next_call_ = 0;       // next one to check
  std::vector<Finding> findings_;
};

}  // namespace jitunwind

// Code that is alike: what is known of one procedure holds for all that are described in the same words.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The place of code in its shape, as an address that no code has. Nothing is ever registered at such an address. So a
/// rule that is kept there holds for ever. Code that replaces other code has another place, or the same rows.
class AlikePlace {
 public:
  constexpr AlikePlace() noexcept = default;
  /// Preconditions: shape > 0, offset <= k_most_offset. `has_facts`: of a personality routine or its data, which each
  /// procedure has for itself.
  constexpr AlikePlace(std::uint32_t shape, std::uint64_t offset, bool has_facts) noexcept
      : at_(k_no_code | (has_facts ? k_facts : 0) | std::uint64_t{shape} << k_shape_at | offset) {}
  static constexpr std::uint64_t k_most_offset = (std::uint64_t{1} << 24) - 1;

  constexpr explicit operator bool() const noexcept { return at_ != 0; }
  constexpr Addr at() const noexcept { return at_; }
  constexpr bool has_facts() const noexcept { return (at_ & k_facts) != 0; }

 private:
  static constexpr unsigned k_shape_at = 24;
  static constexpr std::uint64_t k_no_code = std::uint64_t{1} << 63, k_facts = std::uint64_t{1} << 62;

  Addr at_ = 0;
};

class CallerRule;
struct AlikeRules;
struct NewRow;

/// The shapes of one address space's code.
class CodeShapes {
 public:
  /// The rule that is kept of code like that which is at `at` at some moment of the call. None: there is no such rule.
  /// Then the row is made at once, if it is of a short form (NewRow::is_made). Needs room on the stack
  /// (small_stack_internal.h), and is signal-safe.
  virtual CallerRule find_rule(Addr at, const AlikeRules& rules, NewRow& row) const noexcept = 0;

 protected:
  ~CodeShapes() = default;
};

}  // namespace jitunwind
#pragma GCC visibility pop

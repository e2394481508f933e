// A walk's place in the table of kept rules (row_cache_internal.h), as positions on a stack carry it.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

class CallerRule;

/// The entry by which a walk left the frame before, and the entry that its caller was left by the last time. Both are
/// hints: whoever uses one checks what stands there.
struct RulePlace {
  std::uint32_t number = k_none;
  std::uint32_t next = 0;
  static constexpr std::uint32_t k_none = ~std::uint32_t{0};

  static RulePlace at(std::uint32_t number, CallerRule rule) noexcept;
};

}  // namespace jitunwind
#pragma GCC visibility pop

#include "jitunwind/unwind_core/kept/keep_nothing_internal.h"

#include <array>
#include <atomic>
#include <string_view>

#include "jitunwind/unwind_core/environment.h"

namespace jitunwind {

/// One of several threads that ask at once names unknown words.
[[gnu::hot]] bool is_to_keep_nothing() noexcept {
  static constexpr std::array<std::string_view, 1> k_words{"nothing"};
  static constinit std::atomic<bool> is_named{false};
  const bool was_named = is_named.exchange(true, std::memory_order_relaxed);
  return environment_words("JITUNWIND_KEEP", k_words, was_named ? IfUnknown::pass_by : IfUnknown::name_it) != 0;
}

}  // namespace jitunwind

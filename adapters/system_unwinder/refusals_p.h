// Failed lookups of registered procedures by the unwinder.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// `error.at` is the pc. Signal-safe.
[[gnu::visibility("default")]] void note_refusal(const Error& error) noexcept;

struct Refusals {
  std::uint64_t count = 0;
  Error latest{};  ///< unspecified if there is none
};
[[gnu::visibility("default")]] Refusals refusals() noexcept;

}  // namespace jitunwind

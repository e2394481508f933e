// Questions of the unwinder about registered procedures that could not be answered.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// `error.at` is the pc. Signal-safe.
void note_refusal(const Error& error) noexcept;

struct Refusals {
  std::uint64_t count = 0;
  Error latest{};  ///< unspecified when there is none
};
Refusals refusals() noexcept;

}  // namespace jitunwind

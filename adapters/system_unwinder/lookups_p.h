// Lookups of code by the unwinder: those of registered procedures that failed, and those of a private address, which
// show what definition is called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// The unwinder's function of that name, which returns the function at an address and looks up its FDE.
using FindEnclosingFunction = void*(void* pc);

/// Whether a lookup through this unwinder reaches this library, or its own exception runtime, which looks procedures up
/// itself. Null: false. Signal-safe as far as the unwinder is.
bool question_arrives(FindEnclosingFunction* ask) noexcept;

/// Records that a lookup of the private address arrived on this thread.
void note_probe() noexcept;

#pragma GCC visibility push(default)
/// No code. The unwinder may look up the byte before the given address.
extern std::byte probe_place[2];

/// Whether `pc` is the private address. Signal-safe.
inline bool is_probe(const void* pc) noexcept {
  return reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(probe_place) <= 1;
}
#pragma GCC visibility pop

/// Notes a failed lookup of a registered procedure; `error.at` is the pc. Signal-safe.
[[gnu::visibility("default")]] void note_refusal(const Error& error) noexcept;

struct Refusals {
  std::uint64_t count = 0;
  Error latest{};  ///< unspecified if there is none
};
[[gnu::visibility("default")]] Refusals refusals() noexcept;

}  // namespace jitunwind

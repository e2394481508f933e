// Call frame information of registered procedures in the form that the unwinder of the C++ run-time reads, and the
// interface between that and this library. No public header has it, but it is fixed since libgcc_s exported it
// (GCC_3.0).
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"

namespace jitunwind {

/// Bases of an FDE's pointers, and the beginning of its code.
struct EhBases {
  void* text;
  void* data;
  void* function;
};
static_assert(sizeof(EhBases) == 3 * sizeof(void*));

/// FDE of the code at `pc`, an address within the call, or null. No definition throws.
using FindFde = const void*(void* pc, EhBases* bases) noexcept;

#pragma GCC visibility push(default)
struct RegisteredFde {
  enum class Kind : std::uint8_t {
    not_registered,  ///< not registered here: the next definition decides
    none,  ///< registered, but an FDE cannot express it, or there is no memory for one; or the probe's address
    found,
    others_first,  ///< registered, but others may know a personality routine: if they do not, call again
  };
  const void* fde;  ///< valid until the procedure is cancelled
  EhBases bases;
};

/// Sets `out` if the FDE is found. Takes no lock, does not call malloc and does not wait. The first lookup of a
/// procedure, or of a stretch of a large one, encodes its rows; a later one is an index lookup. Signal-safe.
/// Thread-safe. `others_asked`: the other definitions do not know the code.
RegisteredFde::Kind find_registered_fde(const void* pc, RegisteredFde& out, bool others_asked = false) noexcept;
#pragma GCC visibility pop

// Lookups of code by the unwinder: those of registered procedures that failed, and those of a private address, which
// show what definition is called.

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

// An address that is no code, which unwinders are asked about to see who answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitunwind {

/// The unwinder's function of that name: who wants to know which function an address is in asks for its FDE.
using FindEnclosingFunction = void*(void* pc);

/// Whether a question to this unwinder arrives here, or at our own exception runtime, which looks procedures up itself.
/// Null: false. Signal-safe as far as the unwinder is.
bool question_arrives(FindEnclosingFunction* ask) noexcept;

/// That a question about the private address has come, on this thread.
void note_probe() noexcept;

#pragma GCC visibility push(default)
/// No code. The unwinder may look at the byte before the address that it is asked about.
extern std::byte probe_place[2];

/// Whether `pc` is the private address. Signal-safe.
inline bool is_probe(const void* pc) noexcept {
  return reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(probe_place) <= 1;
}
#pragma GCC visibility pop

}  // namespace jitunwind

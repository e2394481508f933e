// An address that is no code, which unwinders are asked about to see who answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// No code. The unwinder may look at the byte before the address that it is asked about.
extern std::byte probe_place[2];
/// Questions about it that have come.
extern constinit std::atomic<unsigned> probes_seen;

/// Whether `pc` is the private address. Signal-safe.
inline bool is_probe(const void* pc) noexcept {
  return reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(probe_place) <= 1;
}

}  // namespace jitunwind
#pragma GCC visibility pop

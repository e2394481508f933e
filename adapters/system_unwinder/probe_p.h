// An address that is no code, which unwinders are asked about to see who answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jitunwind {

/// No code. The unwinder may look at the byte before the address that it is asked about.
inline constinit std::byte probe_place[2]{};
inline constinit std::atomic<unsigned> probes_seen{0};

/// Whether `pc` is the private address; notes that the question has come. Signal-safe.
inline bool is_probe(const void* pc) noexcept {
  if (reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(probe_place) > 1) return false;
  probes_seen.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace jitunwind

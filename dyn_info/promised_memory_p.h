// Memory that the registration of a procedure promises to be readable (docs/contracts.md): no system call proves it.
#pragma once

#include <cstdint>
#include <cstring>

#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

/// Memory of this process without probes. Constant-initialised, signal-safe.
class PromisedMemory final : public Memory {
 public:
  constexpr PromisedMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    std::memcpy(into.data(), host(at), into.size());
    return into.size();
  }
  const std::byte* view(Addr at, std::size_t, MemoryWindow&) const noexcept override { return host(at); }

 private:
  static const std::byte* host(Addr at) noexcept {
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(at));
  }
};

}  // namespace jitunwind

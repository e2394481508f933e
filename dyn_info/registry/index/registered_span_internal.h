// The span of addresses in which code has ever been registered. It serves callers that mostly ask about other code.
#pragma once

#include <atomic>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

class RegisteredSpan {
 public:
  /// Returns false if no procedure that the caller knows to be registered covers `pc`. Two comparisons. Signal-safe.
  bool may_cover(std::uint64_t pc) const noexcept {
    return pc >= lowest_.load(std::memory_order_relaxed) && pc < highest_.load(std::memory_order_relaxed);
  }
  bool may_cover(const void* at) const noexcept { return may_cover(reinterpret_cast<std::uintptr_t>(at)); }
  /// The holder of the writers' lock calls it before the procedure can be found.
  void include(std::uint64_t start, std::uint64_t last) noexcept {
    if (start < lowest_.load(std::memory_order_relaxed)) lowest_.store(start, std::memory_order_relaxed);
    if (last >= highest_.load(std::memory_order_relaxed)) highest_.store(last + 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> lowest_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> highest_{0};
};

/// The span of the one registry.
extern constinit RegisteredSpan registered_span;

}  // namespace jitunwind
#pragma GCC visibility pop

// The debugger of this process.
#pragma once

#include <chrono>

namespace jitunwind {

enum class TracerKind { none, gdb, other };

/// The tracer according to proc(5): the line TracerPid of /proc/self/status, and the tracer's comm. A tracer in a pid
/// namespace that is not visible from here counts as none.
TracerKind find_tracer() noexcept;

/// Caches find_tracer() for 10 ms. One thread at a time.
class Tracer {
 public:
  TracerKind kind() noexcept {
    const Clock::time_point now = Clock::now();
    if (now >= again_at_) {
      kind_ = find_tracer();
      again_at_ = now + k_between;
    }
    return kind_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration k_between = std::chrono::milliseconds(10);
  TracerKind kind_ = TracerKind::none;
  Clock::time_point again_at_{};
};

}  // namespace jitunwind

// Who debugs this process.
#pragma once

#include <chrono>

namespace jitunwind {

enum class TracerKind { none, gdb, other };

/// As proc(5) has it: the line TracerPid of /proc/self/status, and the tracer's comm. One in a pid namespace that is
/// not seen from here is none.
TracerKind find_tracer() noexcept;

/// The same, looked for every 10 ms at most. One thread at a time.
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

// A limit for the stops of the process by a debugger.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace jitunwind {

/// The budget allows a number of stops, and more while they take at most a fifth of the time; unused stops and time are
/// saved up. It allows fewer stops if each takes seconds. One change still goes at once after a quiet time, pause(),
/// when the budget is spent.
class StopBudget {
 public:
  using Clock = std::chrono::steady_clock;

  bool is_spent() noexcept {
    refill();
    return time_ <= -k_most_debt || (time_ <= Clock::duration(0) && stops_ < k_between_stops);
  }
  /// Called after a change that stopped the process.
  void spend(Clock::duration time, unsigned stops) noexcept {
    time_ = std::max(time_ - time, -2 * k_most_debt);
    stops_ = std::max(stops_ - stops * k_between_stops, Clock::duration(0));
    pause_ = std::clamp(time, k_least_pause, k_most_pause);
    paused_until_ = Clock::now() + pause_;
  }
  void restore() noexcept {
    time_ = k_most_time;
    stops_ = k_most_stops;
  }
  /// Time for which changes are collected: as long as the latest change took, since the process should run half of the
  /// time.
  Clock::duration pause() const noexcept { return pause_; }
  bool has_paused() const noexcept { return Clock::now() >= paused_until_; }

 private:
  static constexpr Clock::duration k_most_time = std::chrono::milliseconds(400);
  static constexpr Clock::duration k_most_debt = std::chrono::seconds(1);
  static constexpr Clock::duration k_between_stops = std::chrono::milliseconds(15);
  static constexpr Clock::duration k_most_stops = 100 * k_between_stops;
  static constexpr Clock::duration k_least_pause = std::chrono::milliseconds(30);
  static constexpr Clock::duration k_most_pause = std::chrono::seconds(1);

  void refill() noexcept {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - std::exchange(refilled_, now);
    time_ = std::min(time_ + passed / 5, k_most_time);
    stops_ = std::min(stops_ + passed, k_most_stops);
  }

  Clock::duration time_ = k_most_time;
  Clock::duration stops_ = k_most_stops;  // in units of time: one stop per 15 ms
  Clock::duration pause_ = k_least_pause;
  Clock::time_point refilled_ = Clock::now();
  Clock::time_point paused_until_{};
};

}  // namespace jitunwind

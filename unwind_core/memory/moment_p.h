// A period for which facts about memory are assumed to hold, because nothing reports when they change.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

namespace jitunwind {

/// A profiler makes many walks within one moment; an occasional walk finds out everything anew.
class Moment {
 public:
  /// Nanoseconds: a quarter of a second.
  static constexpr std::uint64_t k_length = std::uint64_t{1} << 28;

  constexpr explicit Moment(std::uint64_t nanoseconds) noexcept : number_(nanoseconds / k_length) {}
  /// There is no moment without a clock. Signal-safe, and without a system call where the vDSO has the clock.
  static std::optional<Moment> now() noexcept {
    timespec t;
    if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &t) != 0) return std::nullopt;
    return Moment(static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec));
  }
  constexpr std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_;
};

}  // namespace jitunwind

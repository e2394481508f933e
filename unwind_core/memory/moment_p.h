// A stretch of time in which what was found out of memory is taken to hold, where nobody tells that it changes.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

namespace jitunwind {

/// Walks of a profiler are many in one; a walk now and then finds everything out anew.
class Moment {
 public:
  /// Nanoseconds: a quarter of a second.
  static constexpr std::uint64_t k_length = std::uint64_t{1} << 28;

  constexpr explicit Moment(std::uint64_t nanoseconds) noexcept : number_(nanoseconds / k_length) {}
  /// Nothing where there is no clock. Signal-safe, without a system call where the kernel's object has the clock.
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

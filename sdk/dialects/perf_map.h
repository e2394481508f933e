// Perf maps, /tmp/perf-PID.map: a line "START SIZE name" for each piece of code that a JIT has made, with hexadecimal
// numbers (Linux, tools/perf/Documentation/jit-interface.txt). JITs append to the file while it is read.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A piece of code and its name as a dialect tells them.
struct NamedCode {
  AddrRange code{};
  std::string_view name{};  ///< any bytes but NUL and line feed; valid during the call
  bool is_own = false;      ///< this library has written it (attach_perf())
};

/// This library writes a zero in front of both numbers. Other readers pass over it, and no other writer puts it there.
inline constexpr char k_own_digit = '0';

/// Reads a map as it grows, in pieces of any size. A line counts once its line feed has come. Lines of another form are
/// skipped and counted. Not thread-safe; allocates as much as one line takes.
class PerfMapReader {
 public:
  /// Longer lines are skipped.
  static constexpr std::size_t k_longest_line = 1u << 16;

  /// Reads the next piece of the file and calls `tell` for each line that ends in it.
  void read(std::string_view piece, const std::function<void(const NamedCode&)>& tell);
  /// Begins a new file.
  void restart() noexcept;
  std::size_t passed_by() const noexcept { return passed_by_; }

 private:
  void end_line(std::string_view line, const std::function<void(const NamedCode&)>& tell);

  std::string begun_;  // a line whose end has not come
  bool is_too_long_ = false;
  std::size_t passed_by_ = 0;
};

/// Parses one line without its line feed. Returns false if it has another form, or no code, or code that ends behind
/// the address space.
bool parse_perf_map_line(std::string_view line, NamedCode& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

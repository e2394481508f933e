// Perf maps, /tmp/perf-PID.map: a line for each piece of code that a JIT has made, "START SIZE name", numbers in
// hexadecimal (Linux, tools/perf/Documentation/jit-interface.txt). JITs append to the file while it is read.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Code with a name, as a dialect says it.
struct NamedCode {
  AddrRange code{};
  std::string_view name{};  ///< any bytes but NUL and line feed; valid during the call
};

/// Reads a map as it grows, piece by piece, wherever pieces begin and end. A line counts when its line feed has come.
/// What is no line of this form is passed by, and counted. Not thread-safe; allocates as much as one line takes.
class PerfMapReader {
 public:
  /// Longer lines are passed by.
  static constexpr std::size_t k_longest_line = 1u << 16;

  /// The next piece of the file; `tell` is called for each line that ends in it.
  void read(std::string_view piece, const std::function<void(const NamedCode&)>& tell);
  /// The file begins anew.
  void restart() noexcept;
  std::size_t passed_by() const noexcept { return passed_by_; }

 private:
  void end_line(std::string_view line, const std::function<void(const NamedCode&)>& tell);

  std::string begun_;  // a line whose end has not come
  bool is_too_long_ = false;
  std::size_t passed_by_ = 0;
};

/// One line, without its line feed. False: it has another form, no code, or code that ends behind the address space.
bool parse_perf_map_line(std::string_view line, NamedCode& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

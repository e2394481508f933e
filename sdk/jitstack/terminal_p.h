// Output on terminals: colours, a progress line, numbers, and a target's names, in which there may be what a terminal
// obeys.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace jitunwind::jitstack {

/// Escape sequences, or nothing. A file gets colours if isatty(3) says that it is a terminal, NO_COLOR is empty
/// (no-color.org) and TERM is not "dumb".
struct Colours {
  explicit Colours(int fd);
  Colours() = default;
  const char* dim = "";
  const char* strong = "";
  const char* jit = "";
  const char* guess = "";
  const char* bad = "";
  const char* off = "";
};

/// Shows one line on stderr that is overwritten, if stderr is a terminal. The line appears after a third of a second,
/// so that short work shows none, and is removed at the end.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text);
  /// Whether show() would show anything now. Texts that take time to make need not be made otherwise.
  bool is_due() const { return is_terminal_ && Clock::now() >= next_; }
  void clear();
  /// Writes "jitstack: ", the text, escaped, and a line end to stderr, behind what was written to stdout.
  void say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;
};

/// Returns UTF-8 without anything that a terminal obeys. Control characters (C0, DEL, C1), characters that change the
/// direction of writing, and bytes that are not UTF-8 become "\xNN" each.
std::string escaped(std::string_view foreign);

/// Returns a number as "0x7f", with so many digits at least.
std::string hex(std::uint64_t value, int digits = 1);

}  // namespace jitunwind::jitstack

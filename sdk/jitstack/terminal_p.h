// What is written to people only: colours, and a line that says how far long work is.
#pragma once

#include <chrono>
#include <string>

namespace jitunwind::jitstack {

/// Escape sequences, or nothing: a file is a terminal that wants colours if isatty(3) says so, NO_COLOR is empty
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

/// One line on stderr that is written over, where stderr is a terminal; begins after a third of a second, so that
/// short work shows none. Gone when it ends.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;
};

}  // namespace jitunwind::jitstack

#include "jitunwind/sdk/jitstack/terminal_p.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace jitunwind::jitstack {

Colours::Colours(int fd) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if (!::isatty(fd) || (no_colour && *no_colour) || !terminal || std::string_view(terminal) == "dumb") return;
  dim = "\033[2m";
  strong = "\033[1m";
  jit = "\033[32m";
  guess = "\033[33m";
  bad = "\033[31m";
  off = "\033[0m";
}

Progress::Progress()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), next_(Clock::now() + std::chrono::milliseconds(333)) {}

void Progress::show(const std::string& text) {
  if (!is_terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  is_shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

void Progress::clear() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
}

}  // namespace jitunwind::jitstack

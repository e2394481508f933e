#include "jitunwind/sdk/jitstack/terminal_p.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"

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
  if (!is_due()) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  is_shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

void Progress::clear() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
}

void Progress::say(const std::string& text) {
  clear();
  std::fflush(stdout);
  std::fprintf(stderr, "jitstack: %s\n", escaped(text).c_str());
}

namespace {

struct Character {
  char32_t code = 0;
  std::size_t size = 0;  ///< bytes; 0: invalid UTF-8 (RFC 3629, 4)
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t k_least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < k_least[size] || code > 0x10ffff || is_surrogate) return {};
  return {code, size};
}

bool is_obeyed(char32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  // Characters that set the direction (Unicode Bidirectional Algorithm, 2), and line and paragraph separators.
  const bool turns = code == 0x61c || (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return is_control || turns || code == 0xfffe || code == 0xffff;
}

}  // namespace

std::string escaped(std::string_view foreign) {
  std::string text;
  text.reserve(foreign.size());
  while (!foreign.empty()) {
    const Character character = first_of(foreign);
    const std::size_t size = character.size == 0 ? 1 : character.size;
    if (character.size != 0 && !is_obeyed(character.code)) {
      text += foreign.substr(0, size);
    } else {
      for (const char c : foreign.substr(0, size)) {
        char hex[8];
        std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        text += hex;
      }
    }
    foreign.remove_prefix(size);
  }
  return text;
}

std::string hex(std::uint64_t value, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*" PRIx64, digits, value);
  return text;
}

namespace {

using Clock = std::chrono::steady_clock;

/// Blocks SIGINT and SIGTERM and waits for them: delivered while a thread is being stopped, a signal would end the wait
/// for that thread.
class Interrupts {
 public:
  Interrupts() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Interrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Returns true if a signal has come. Looks once even if `until` has passed.
  bool wait(Clock::time_point until) const {
    for (;;) {
      const auto left = std::max(until - Clock::now(), Clock::duration::zero());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      timespec time{};
      time.tv_sec = seconds.count();
      time.tv_nsec = std::chrono::nanoseconds(left - seconds).count();
      if (::sigtimedwait(&set_, nullptr, &time) > 0) return true;
      if (errno == EAGAIN) return false;
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

class Watching {
 public:
  explicit Watching(const Options& options) : options_(options), process_(options.processes.front()) {}

  ExitStatus run() {
    const Interrupts interrupts;
    auto target = Target::attach(process_, options_.hold ? Target::Hold::while_attached : Target::Hold::to_copy);
    if (!target) return progress_.say(target.error().text()), ExitStatus::no_target;
    begin_ = Clock::now();
    const auto end = begin_ + seconds(options_.watch);
    auto next = begin_;
    for (;;) {
      look(*target);
      const auto now = Clock::now();
      // Looks that would come too late are skipped.
      while (next <= now) next += seconds(1 / options_.frequency);
      if (next >= end) break;
      progress_.show(told());
      if (interrupts.wait(next)) break;
      if (const auto renewed = target->renew(); !renewed) {
        progress_.say(renewed.error().text());
        break;
      }
    }
    target->let_go();
    return write();
  }

 private:
  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }

  void look(Target& target) {
    if (!options_.hold) target.let_go();
    for (const TargetThread& thread : target.threads()) {
      if (!options_.threads.empty() && std::ranges::count(options_.threads, thread.id) == 0) continue;
      // Threads that have ended since they were listed have no stack.
      if (!target.registers(thread)) continue;
      profile_.add(see(target, thread, Rows::no, options_.guesses()));
    }
    ++looks_;
    target.let_go();
  }

  std::string told() const {
    char text[160];
    std::snprintf(text, sizeof text, "%llu stacks in %.1f s, %llu looks, %llu stacks cut short",
                  static_cast<unsigned long long>(profile_.stacks()),
                  std::chrono::duration<double>(Clock::now() - begin_).count(), static_cast<unsigned long long>(looks_),
                  static_cast<unsigned long long>(profile_.cut_short()));
    return text;
  }

  ExitStatus write() {
    progress_.clear();
    if (profile_.stacks() == 0)
      return progress_.say("No stack was seen: there is no such thread."), ExitStatus::no_target;
    const std::string output = options_.output.empty() ? "jitstack-" + std::to_string(process_) : options_.output;
    return profile_.write(output, told() + ", whether threads run or wait");
  }

  const Options& options_;
  pid_t process_;
  Profile profile_;
  Progress progress_;
  Clock::time_point begin_;
  std::uint64_t looks_ = 0;
};

}  // namespace

ExitStatus watch(const Options& options) { return Watching(options).run(); }

}  // namespace jitunwind::jitstack

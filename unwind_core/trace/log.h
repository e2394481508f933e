// The log that JITUNWIND_LOG asks for: why a frame was slow, guessed or not kept, which rows were made, what was
// registered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace jitunwind {

/// What the log is about: a word of JITUNWIND_LOG each, and a bit of set_log().
enum class LogTopic : std::uint32_t {
  walk = 1,      ///< frames that were not left by what is kept, guesses, and why walks ended
  rows = 2,      ///< the rows that were made
  registry = 4,  ///< what is registered, cancelled and retired, and what is refused
};
inline constexpr std::uint32_t k_all_log_topics = 7;

/// Lines about these topics go to `fd` from now on, each by one write(2); 0: none. In the place of what JITUNWIND_LOG
/// and JITUNWIND_LOG_FD say, which are read when the library is loaded. Signal-safe, thread-safe.
void set_log(std::uint32_t topics, int fd = 2) noexcept;
/// Where lines go.
int log_fd() noexcept;

extern constinit std::uint32_t log_topics;  // read and written atomically: <atomic> takes long to compile

/// One load. Signal-safe.
inline bool logs(LogTopic topic) noexcept {
  return (__atomic_load_n(&log_topics, __ATOMIC_RELAXED) & static_cast<std::uint32_t>(topic)) != 0;
}

/// Text of bounded length, made without allocating: what does not fit is cut. Signal-safe.
class Line {
 public:
  /// Each adds something behind what is there, and returns the line.
  Line& text(std::string_view text) noexcept;
  /// "0x" and digits.
  Line& hex(std::uint64_t value) noexcept;
  Line& number(std::uint64_t value) noexcept;
  /// "0x1000-0x2000".
  Line& range(std::uint64_t begin, std::uint64_t end) noexcept;
  /// Somebody else's text: without control characters, which a terminal would obey.
  Line& foreign(std::string_view text) noexcept;

  std::string_view view() const noexcept { return {text_.data(), size_}; }
  /// With a line feed, in one system call that no cancellation ends; errno stays. Nobody can be told where it fails.
  void write_to(int fd) noexcept;

 private:
  static constexpr std::size_t k_room = 499;
  std::array<char, k_room + 1> text_;
  std::size_t size_ = 0;
};

/// A line of the log, written when it ends: "jitunwind walk: ...". Precondition: logs(topic). Signal-safe.
class LogLine : public Line {
 public:
  explicit LogLine(LogTopic topic) noexcept;
  ~LogLine() { write_to(log_fd()); }
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
};

}  // namespace jitunwind
#pragma GCC visibility pop

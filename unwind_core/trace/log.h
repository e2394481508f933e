// The log that JITUNWIND_LOG asks for. It tells why a frame was slow, guessed or not kept, which rows were made, and
// which procedures were registered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace jitunwind {

/// The topics of the log. Each is a word of JITUNWIND_LOG and a bit of set_log().
enum class LogTopic : std::uint32_t {
  walk = 1,      ///< frames that were left without a kept rule or row, guesses, and why walks ended
  rows = 2,      ///< the rows that were made
  registry = 4,  ///< procedures that are registered, cancelled and retired, and refused changes
};
inline constexpr std::uint32_t k_all_log_topics = 7;

/// Writes lines about these topics to `fd` from now on, each by one write(2); 0 topics write nothing. This replaces
/// JITUNWIND_LOG and JITUNWIND_LOG_FD, which are read when the library is loaded. Signal-safe, thread-safe.
void set_log(std::uint32_t topics, int fd = 2) noexcept;
/// The file descriptor of the log.
int log_fd() noexcept;

extern constinit std::uint32_t log_topics;  // accessed atomically without <atomic>, which takes long to compile

/// The topics, and words beyond them that registrations look at by the same load. Signal-safe.
inline std::uint32_t log_words() noexcept { return __atomic_load_n(&log_topics, __ATOMIC_RELAXED); }
void add_to_log_words(std::uint32_t words) noexcept;

/// Takes one load. Signal-safe.
inline bool logs(LogTopic topic) noexcept { return (log_words() & static_cast<std::uint32_t>(topic)) != 0; }

/// Text of bounded length, made without allocation. A text that does not fit is cut. Signal-safe.
class Line {
 public:
  /// Each of these appends something and returns the line.
  Line& text(std::string_view text) noexcept;
  /// Appends "0x" and digits.
  Line& hex(std::uint64_t value) noexcept;
  Line& number(std::uint64_t value) noexcept;
  /// Appends a range such as "0x1000-0x2000".
  Line& range(std::uint64_t begin, std::uint64_t end) noexcept;
  /// Appends text from outside with control characters replaced by '?', since a terminal would obey them.
  Line& foreign(std::string_view text) noexcept;
  static constexpr bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

  std::string_view view() const noexcept { return {text_.data(), size_}; }
  /// Writes the line and a line feed by one system call, no cancellation point. Keeps errno and reports no failure.
  void write_to(int fd) noexcept;

 private:
  static constexpr std::size_t k_room = 499;
  std::array<char, k_room + 1> text_;
  std::size_t size_ = 0;
};

/// A line of the log, "jitunwind walk: ...", written by the destructor. Precondition: logs(topic). Signal-safe.
class LogLine : public Line {
 public:
  explicit LogLine(LogTopic topic) noexcept;
  ~LogLine() { write_to(log_fd()); }
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
};

}  // namespace jitunwind
#pragma GCC visibility pop

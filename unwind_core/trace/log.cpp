#include "jitunwind/unwind_core/trace/log.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

constinit std::uint32_t log_topics = 0;

namespace {

constexpr std::array<std::string_view, 3> k_topic_names{"walk", "rows", "registry"};
static_assert(k_all_log_topics == (1u << k_topic_names.size()) - 1);

constinit std::atomic<int> fd_of_log{STDERR_FILENO};

/// If the variable is no valid number, a message says so and standard error is used.
int fd_of_environment() noexcept {
  const char* const value = ::secure_getenv("JITUNWIND_LOG_FD");
  if (value == nullptr) return STDERR_FILENO;
  const std::string_view text(value);
  int fd = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && fd >= 0) return fd;
  Line line;
  line.text("jitunwind: JITUNWIND_LOG_FD: \"").foreign(text.substr(0, 64)).text("\" is no file descriptor");
  line.write_to(STDERR_FILENO);
  return STDERR_FILENO;
}

/// Runs before threads exist that might change the environment.
[[gnu::constructor]] void log_by_environment() {
  const std::uint32_t topics = environment_words("JITUNWIND_LOG", k_topic_names);
  if (topics != 0) set_log(topics, fd_of_environment());
}

}  // namespace

void set_log(std::uint32_t topics, int fd) noexcept {
  fd_of_log.store(fd, std::memory_order_relaxed);
  std::atomic_ref<std::uint32_t> words(log_topics);
  words.fetch_and(~k_all_log_topics, std::memory_order_relaxed);
  words.fetch_or(topics & k_all_log_topics, std::memory_order_relaxed);
}

void add_to_log_words(std::uint32_t words) noexcept {
  std::atomic_ref(log_topics).fetch_or(words, std::memory_order_relaxed);
}

int log_fd() noexcept { return fd_of_log.load(std::memory_order_relaxed); }

Line& Line::text(std::string_view text) noexcept {
  size_ += text.copy(text_.data() + size_, k_room - size_);
  return *this;
}

Line& Line::hex(std::uint64_t value) noexcept {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return text("0x").text({digits.data(), end});
}

Line& Line::number(std::uint64_t value) noexcept {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return text({digits.data(), end});
}

Line& Line::range(std::uint64_t begin, std::uint64_t end) noexcept { return hex(begin).text("-").hex(end); }

Line& Line::foreign(std::string_view text) noexcept {
  char* const begin = text_.data() + size_;
  this->text(text);
  std::replace_if(begin, text_.data() + size_, is_control, '?');
  return *this;
}

void Line::write_to(int fd) noexcept {
  const ErrnoKeeper keep_errno;
  text_[size_] = '\n';
  (void)::syscall(SYS_write, fd, text_.data(), size_ + 1);
}

LogLine::LogLine(LogTopic topic) noexcept {
  const auto bit = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(topic)));
  text("jitunwind ").text(k_topic_names[bit]).text(": ");
}

[[gnu::section(".bss.large")]] constinit std::array<CounterSet, k_counter_sets> counter_sets;

std::uint64_t counted(Counter counter) noexcept {
  std::uint64_t sum = 0;
  for (const CounterSet& set : counter_sets)
    sum += set.values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace jitunwind

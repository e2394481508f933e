// Captures the log, through a pipe, while a test looks.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/trace/log.h"
#include "tests/support/texts.h"

namespace jitunwind::test {

/// A pipe that holds a megabyte, and returns its contents.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    (void)::fcntl(ends_[1], F_SETPIPE_SZ, 1 << 20);
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int in() const { return ends_[1]; }
  std::string read() const {
    std::string all;
    std::array<char, 4096> part;
    for (ssize_t n; (n = ::read(ends_[0], part.data(), part.size())) > 0;)
      all.append(part.data(), static_cast<std::size_t>(n));
    return all;
  }

 private:
  std::array<int, 2> ends_{};
};

/// The log of these topics, for as long as it lives.
class CapturedLog {
 public:
  explicit CapturedLog(std::uint32_t topics) { set_log(topics, pipe_.in()); }
  explicit CapturedLog(LogTopic topic) : CapturedLog(static_cast<std::uint32_t>(topic)) {}
  ~CapturedLog() { set_log(0); }

  std::string read() const { return pipe_.read(); }
  std::vector<std::string> lines() const { return lines_of(read()); }

 private:
  Pipe pipe_;
};

inline std::string hex_of(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

}  // namespace jitunwind::test

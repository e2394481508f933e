// Children of a test that are examined from outside.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/texts.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {

/// Returns the state of a process or a thread: "R", "S", "t", ...
inline char state_of(pid_t process) {
  for (const std::string& line : lines_of(text_of_file("/proc/" + std::to_string(process) + "/status")))
    if (line.starts_with("State:")) return line.at(7);
  return '?';
}

/// Waits for a state; a process that was let go first restarts its system call.
inline char state_soon(pid_t process, char wanted) {
  for (int i = 0; i < 5000 && state_of(process) != wanted; ++i) ::usleep(1000);
  return state_of(process);
}

/// A child that reports when it is ready, and stands in pause() after the end of `run`. It ends with the object.
class SayingChild {
 public:
  explicit SayingChild(const std::function<void(const SayingChild&)>& run) {
    if (::pipe(words_) != 0) std::abort();
    process_ = ::fork();
    if (process_ != 0) return;
    die_with_the_test();
    run(*this);
    for (;;) ::pause();
  }
  ~SayingChild() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(words_[0]), ::close(words_[1]);
  }
  SayingChild(const SayingChild&) = delete;
  SayingChild& operator=(const SayingChild&) = delete;

  pid_t process() const { return process_; }
  /// The child calls this.
  template <class Word>
  void say(const Word& word) const {
    (void)!::write(words_[1], &word, sizeof word);
  }
  /// The parent calls this; it waits for the word.
  template <class Word>
  Word heard() const {
    Word word{};
    EXPECT_EQ(::read(words_[0], &word, sizeof word), static_cast<ssize_t>(sizeof word));
    return word;
  }
  bool has_said_within(int milliseconds) const {
    pollfd said{words_[0], POLLIN, 0};
    return ::poll(&said, 1, milliseconds) == 1;
  }

 private:
  int words_[2]{};
  pid_t process_ = 0;
};

}  // namespace jitunwind::test

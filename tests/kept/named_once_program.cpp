// Two threads build the local address space at once, before the library's own constructor does. One of them reports the
// unknown word of JITUNWIND_KEEP on standard error, which nobody reads yet; meanwhile the other begins and ends. Prints
// the report.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "jitunwind/sdk/local_space.h"

namespace {

using namespace std::chrono_literals;

/// Returns whether the thread sleeps. It does so in write(2), because it takes no locks.
bool sleeps(long tid) {
  std::ifstream stat("/proc/self/task/" + std::to_string(tid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t behind_name = text.rfind(')');
  return behind_name != std::string::npos && text.compare(behind_name, 4, ") S ") == 0;
}

template <class Condition>
void wait_until(Condition condition, const char* what) {
  for (int i = 0; i < 10'000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
  if (condition()) return;
  std::printf("not so after ten seconds: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

/// A pipe that is full.
class FullPipe {
 public:
  FullPipe() {
    if (::pipe(ends_.data()) != 0 || ::fcntl(ends_[1], F_SETFL, O_NONBLOCK) != 0) std::abort();
    const std::array<char, 4096> page{};
    while (::write(ends_[1], page.data(), page.size()) > 0) {
    }
    ::fcntl(ends_[1], F_SETFL, 0);
  }
  int end() const { return ends_[1]; }
  /// Returns everything in the pipe until it is closed, except for what it was filled with.
  std::string rest() const {
    std::string all;
    char c = 0;
    while (::read(ends_[0], &c, 1) == 1)
      if (c != 0) all += c;
    return all;
  }

 private:
  std::array<int, 2> ends_{};
};

[[gnu::constructor(101)]] void build_at_once() {
  const FullPipe pipe;
  const int before = ::dup(STDERR_FILENO);
  ::dup2(pipe.end(), STDERR_FILENO);
  ::close(pipe.end());
  std::atomic<long> first{0};
  std::atomic<bool> is_second_done{false};
  std::thread one([&] {
    first = ::syscall(SYS_gettid);
    (void)jitunwind::local_space();
  });
  wait_until([&] { return first != 0 && sleeps(first); }, "the first thread writes");
  std::thread other([&] { (void)jitunwind::local_space(), is_second_done = true; });
  wait_until([&] { return is_second_done.load(); }, "the second thread goes on");
  std::string said;
  std::thread reader([&] { said = pipe.rest(); });
  one.join();
  other.join();
  ::dup2(before, STDERR_FILENO);
  reader.join();
  std::printf("%s", said.c_str());
}

}  // namespace

int main() { return 0; }

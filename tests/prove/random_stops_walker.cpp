// This is linked into a program that does not call it. It walks the stack of the thread that gets a signal, from the
// interrupted code.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "jitunwind/sdk/walk.h"
#include "tests/prove/random_stops.h"

namespace jitunwind::random_stops {
namespace {

OwnWalk* own_walk = nullptr;

void walk(int, siginfo_t*, void* ucontext) {
  const int saved = errno;
  std::size_t count = 0;
  Walk walk = walk_interrupted(ucontext);
  for (const Frame& frame : walk)
    if (count < own_walk->frames.size()) own_walk->frames[count++] = {frame.pc(), frame.origin()};
  own_walk->count = count;
  own_walk->stop = walk.stop_reason();
  const char* const what = walk.stop_error().what;
  std::strncpy(own_walk->error.data(), what ? what : "", own_walk->error.size() - 1);
  own_walk->state.store(OwnWalk::k_done, std::memory_order_release);
  errno = saved;
}

[[gnu::constructor]] void be_ready() {
  const char* const path = std::getenv(k_file_variable);
  const int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* const shared = ::mmap(nullptr, sizeof(OwnWalk), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (shared == MAP_FAILED) return;
  own_walk = static_cast<OwnWalk*>(shared);
  // Programs that this one executes are not asked.
  ::unsetenv(k_file_variable);
  struct sigaction action {};
  action.sa_sigaction = walk;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(signal_number(), &action, nullptr);
  own_walk->state.store(OwnWalk::k_ready, std::memory_order_release);
  while (own_walk->state.load(std::memory_order_acquire) == OwnWalk::k_ready) ::sched_yield();
}

}  // namespace
}  // namespace jitunwind::random_stops

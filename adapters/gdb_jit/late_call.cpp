#include "jitunwind/adapters/gdb_jit/late_call_p.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace jitunwind {

void* LateCall::run(void* self) noexcept {
  LateCall& late = *static_cast<LateCall*>(self);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(late.delay_);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((late.delay_ - seconds).count())};
  ::syscall(SYS_futex, &late.stopped_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
  if (late.stopped_.load(std::memory_order_acquire) == 0) late.call_();
  return nullptr;
}

bool LateCall::start(std::chrono::nanoseconds delay, void (*call)()) noexcept {
  const pid_t process = ::getpid();
  if (process_ == process) return true;
  if (stopped_.load(std::memory_order_acquire) != 0) return false;
  // The one before is about to end. A child of fork has none.
  join();
  delay_ = delay;
  call_ = call;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread_, nullptr, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) process_ = thread_process_ = process;
  return started;
}

void LateCall::stop() noexcept {
  stopped_.store(1, std::memory_order_release);
  ::syscall(SYS_futex, &stopped_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void LateCall::join() noexcept {
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);  // pthread_join() is a cancellation point
  if (thread_process_ == ::getpid()) pthread_join(thread_, nullptr);
  pthread_setcancelstate(before, nullptr);
  thread_process_ = 0;
}

}  // namespace jitunwind

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"

namespace jitunwind {

std::uint32_t WaitedWord::exchange(std::uint32_t value) noexcept {
  const std::uint32_t before = word_.exchange(value, std::memory_order_acq_rel);
  (void)::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  return before;
}

void WaitedWord::wait_while(std::uint32_t value, const timespec* until) const noexcept {
  constexpr int k_wait = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;  // until a point in time, not for a duration
  while (load() == value)
    if (::syscall(SYS_futex, &word_, k_wait, value, until, nullptr, FUTEX_BITSET_MATCH_ANY) != 0 && errno == ETIMEDOUT)
      return;
}

timespec monotonic_time_in(std::int64_t nanoseconds) noexcept {
  constexpr std::int64_t k_second = 1'000'000'000;
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t sum = time.tv_nsec + nanoseconds;
  time.tv_sec += static_cast<time_t>(sum / k_second);
  time.tv_nsec = static_cast<long>(sum % k_second);
  return time;
}

void* OwnThread::begin(void* self) noexcept {
  auto& thread = *static_cast<OwnThread*>(self);
  thread.id_ = static_cast<pid_t>(::syscall(SYS_gettid));
  thread.run_(thread.of_);
  return nullptr;
}

bool OwnThread::start(void (*run)(void*) noexcept, void* of) noexcept {
  run_ = run;
  of_ = of;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread_, nullptr, begin, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  process_ = started ? ::getpid() : 0;
  return started;
}

void OwnThread::join() noexcept {
  if (process_ == 0 || process_ != ::getpid()) return;
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);  // pthread_join() is a cancellation point
  pthread_join(thread_, nullptr);
  pthread_setcancelstate(before, nullptr);
  // The join comes before the kernel ends what the thread traces: mm_release() and exit_notify() of kernel/exit.c.
  while (::syscall(SYS_tgkill, process_, id_, 0) == 0) ::sched_yield();
  process_ = 0;
}

}  // namespace jitunwind

// A call that comes a little later, on a thread that is there for it alone.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"

namespace jitunwind {

/// One thread at a time, but for join().
class LateCall {
 public:
  /// `call()` once, after `delay`. True: it will come, in this process; also where it was on its way already.
  bool start(std::chrono::nanoseconds delay, void (*call)()) noexcept;
  /// For the call: start() starts another from here on.
  void is_over() noexcept { process_ = 0; }
  /// From here on no call begins.
  void stop() noexcept;
  /// After stop(), not by what holds up the call: when it returns a call that had begun has returned, and no thread is
  /// left.
  void join() noexcept;

 private:
  static void run(void* self) noexcept;

  OwnThread thread_;
  pid_t process_ = 0;  // has a thread whose call is not over
  std::chrono::nanoseconds delay_{};
  void (*call_)() = nullptr;
  WaitedWord stopped_;  // 0: no
};

}  // namespace jitunwind

// A delayed call on a thread of its own.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"

namespace jitunwind {

/// One thread at a time, except for join().
class LateCall {
 public:
  /// Calls `call()` once, after `delay`. True: the call will happen, in this process; also if it was pending already.
  bool start(std::chrono::nanoseconds delay, void (*call)()) noexcept;
  /// Called by `call()`: start() may start another call from now on.
  void is_over() noexcept { process_ = 0; }
  /// Prevents every later call.
  void stop() noexcept;
  /// Waits after stop() until a call that had begun has returned and no thread is left. The caller must not hold a lock
  /// that the call waits for.
  void join() noexcept;

 private:
  static void run(void* self) noexcept;

  OwnThread thread_;
  pid_t process_ = 0;  // the process with a thread whose call is not over
  std::chrono::nanoseconds delay_{};
  void (*call_)() = nullptr;
  WaitedWord stopped_;  // 0: no
};

}  // namespace jitunwind

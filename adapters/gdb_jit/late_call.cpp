#include "jitunwind/adapters/gdb_jit/late_call_p.h"

#include <unistd.h>

namespace jitunwind {

void LateCall::run(void* self) noexcept {
  LateCall& late = *static_cast<LateCall*>(self);
  const timespec until = monotonic_time_in(late.delay_.count());
  late.stopped_.wait_while(0, &until);
  if (late.stopped_.load() == 0) late.call_();
}

bool LateCall::start(std::chrono::nanoseconds delay, void (*call)()) noexcept {
  const pid_t process = ::getpid();
  if (process_ == process) return true;
  if (stopped_.load() != 0) return false;
  thread_.join();  // the thread before is about to end
  delay_ = delay;
  call_ = call;
  const bool started = thread_.start(run, this);
  if (started) process_ = process;
  return started;
}

void LateCall::stop() noexcept { (void)stopped_.exchange(1); }

void LateCall::join() noexcept { thread_.join(); }

}  // namespace jitunwind

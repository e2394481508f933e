#include "jitunwind/adapters/listen/locks_p.h"

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/dyn_info/registry/registry.h"

namespace jitunwind {

constinit ListenLock told_lock;
constinit ListenLock names_lock;

void keep_names_whole_in_forks() noexcept {
  (void)register_procedures({});  // which brings the registry's handlers
  (void)pthread_atfork([] { names_lock.lock(); }, [] { names_lock.unlock(); }, [] { names_lock.unlock(); });
}

namespace {

[[gnu::constructor(101)]] void keep_told_whole_in_forks() {
  const auto in_child = [] {
    forget_nothing_in_child();
    told_lock.unlock();
  };
  (void)pthread_atfork([] { told_lock.lock(); }, [] { told_lock.unlock(); }, in_child);
}

}  // namespace
}  // namespace jitunwind

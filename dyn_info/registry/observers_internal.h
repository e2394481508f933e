// Observers as the registry sees them.
#pragma once

#include <atomic>
#include <span>

#include "jitunwind/dyn_info/registry/locking/writer_lock_internal.h"
#include "jitunwind/dyn_info/registry/locking/writing_scope_p.h"
#include "jitunwind/dyn_info/registry/observers.h"

namespace jitunwind {

/// The observers and their lock, which is taken before that of the writers where both are (docs/registry.md
/// "Observers").
class ObserverList {
 public:
  /// All that registering and cancelling cost where nobody observes: one load. Set before what is registered is looked
  /// through under the writers' lock, and writers look at it behind theirs: so whoever registers after that look, or
  /// cancels what was found, sees it.
  bool any() const noexcept { return first_.load(std::memory_order_relaxed) != nullptr; }

  // With the lock.

  void add(RegistryObserver& observer) noexcept;
  /// False: it is not there.
  bool remove(RegistryObserver& observer) noexcept;
  bool contains(const RegistryObserver& observer) const noexcept;
  template <class Tell>
  void tell(Tell tell) noexcept {
    const bool retired = some_retired.exchange(false, std::memory_order_acq_rel);
    for (RegistryObserver* o = first_.load(std::memory_order_relaxed); o != nullptr; o = o->next_) {
      if (retired) o->retired();
      tell(*o);
    }
  }

  WriterLock lock;
  std::atomic<bool> some_retired{false};

 private:
  std::atomic<RegistryObserver*> first_{nullptr};
};

extern constinit ObserverList observers;

/// Has the observers to itself: none is being called, none attached. Inside of a WritingScope only.
class ObserversScope {
 public:
  ObserversScope() noexcept { observers.lock.lock(); }
  ~ObserversScope() { (void)observers.lock.unlock(); }
  ObserversScope(const ObserversScope&) = delete;
  ObserversScope& operator=(const ObserversScope&) = delete;
};

// Called without the writers' lock, where observers.any().

/// Before register returns.
void tell_registered(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// Before cancel returns.
void tell_cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// Before retire returns. Does not wait.
inline void tell_retired() noexcept { observers.some_retired.store(true, std::memory_order_release); }

/// attach_observer() inside of an ObserversScope.
Status attach_in_scope(RegistryObserver& observer) noexcept;

/// The calling thread is inside a writer: in an observer, or in a signal handler that interrupted it. Writers are
/// refused with in_signal_handler as long as that is so. Signal-safe.
[[gnu::visibility("default")]] bool is_writing() noexcept;

}  // namespace jitunwind

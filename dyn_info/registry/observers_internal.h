// The registry's side of observers.
#pragma once

#include <atomic>
#include <span>

#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

[[gnu::visibility("default")]] extern constinit thread_local std::atomic<bool> thread_is_writing;

/// Keeps signal handlers of this thread out of the writers.
class WritingScope {
 public:
  WritingScope() noexcept { set(true); }
  ~WritingScope() { set(false); }
  WritingScope(const WritingScope&) = delete;
  WritingScope& operator=(const WritingScope&) = delete;

  static bool active() noexcept { return thread_is_writing.load(std::memory_order_relaxed); }
  static void set(bool on) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_is_writing.store(on, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

inline Error refused_to_interrupter() noexcept {
  return {ErrorCode::in_signal_handler, 0, "a writer was interrupted by itself"};
}

/// The observers and their lock. A thread that takes this lock and the writers' lock takes this one first
/// (docs/registry.md "Observers").
class ObserverList {
 public:
  /// One load is all that register and cancel pay where nobody observes. attach_observer() sets the pointer before it
  /// collects the registered procedures under the writers' lock, and a writer loads it after it has held that lock. So
  /// a writer that registers after the collection, or cancels what was collected, sees the observer. The lock orders
  /// the two, so that a relaxed load is enough.
  bool any() const noexcept { return first_.load(std::memory_order_relaxed) != nullptr; }

  // The caller of these holds `lock`.

  void add(RegistryObserver& observer) noexcept;
  /// Returns false if the observer is not in the list.
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

[[gnu::visibility("default")]] extern constinit ObserverList observers;

/// Excludes all other use of the observers: nobody else calls, attaches or detaches one. The caller is inside a
/// WritingScope.
class ObserversScope {
 public:
  ObserversScope() noexcept { observers.lock.lock(); }
  ~ObserversScope() { (void)observers.lock.unlock(); }
  ObserversScope(const ObserversScope&) = delete;
  ObserversScope& operator=(const ObserversScope&) = delete;
};

// Writers call these without the writers' lock, where observers.any().

/// register calls it before it returns.
[[gnu::visibility("default")]] void tell_registered(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// cancel calls it before it returns.
void tell_cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// retire calls it before it returns. It never waits.
inline void tell_retired() noexcept { observers.some_retired.store(true, std::memory_order_release); }

/// Code of this thread of which observers are told by a later call, when it is in a file as well; not in
/// register_procedure(). A signal handler that registers other code meanwhile tells of that as always.
class ToldLater {
 public:
  explicit ToldLater(Addr start) noexcept { start_ = start; }
  ~ToldLater() { start_ = 0; }
  ToldLater(const ToldLater&) = delete;
  ToldLater& operator=(const ToldLater&) = delete;

  static bool includes(std::span<unw_dyn_info_t* const> procedures) noexcept {
    return procedures.size() == 1 && procedures.front()->start_ip == start_;
  }

 private:
  [[gnu::visibility("default")]] static constinit thread_local Addr start_;
};

/// Whether the code that begins there is in a library's file by name, with call frame information. The layer that makes
/// such files sets it. Not signal-safe.
[[gnu::visibility("default")]] extern constinit std::atomic<bool (*)(Addr start) noexcept> is_in_file;

// The caller of these is inside an ObserversScope.

/// Does what attach_observer() does.
[[gnu::visibility("default")]] Status attach_in_scope(RegistryObserver& observer) noexcept;
/// Tells the observer of all registered procedures, oldest first. Returns false if there is no memory for a list of
/// them.
[[gnu::visibility("default")]] bool tell_of_all(RegistryObserver& observer) noexcept;

/// Returns whether the calling thread is inside a writer, that is, in an observer or in a signal handler that
/// interrupted a writer. Writers fail with in_signal_handler as long as that is so. Signal-safe.
[[gnu::visibility("default")]] bool is_writing() noexcept;

/// Attaches the adapters that JITUNWIND_ATTACH names. The registry calls it before the first registration, inside a
/// WritingScope. environment_words() describes who reads the variable and what becomes of unknown names.
void attach_by_environment() noexcept;

// The layer of adapters defines these, as it does those of registry_internal.h. The caller is inside a
// WritingScope.

/// Opens the library with the adapter, if there is none. The caller holds no lock.
void open_gdb() noexcept;
/// Returns what standard error says of it: why it is not attached, or a remark. Null: nothing.
const char* attach_gdb_in_writer() noexcept;
Status attach_perf_in_writer() noexcept;

}  // namespace jitunwind

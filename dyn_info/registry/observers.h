// Observers of registrations: adapters that pass registered procedures on to debuggers and profilers. An observer may
// come and go at any time.
#pragma once

#include <span>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A procedure as observers are told of it.
struct RegisteredProcedure {
  unw_dyn_info_t* info = nullptr;  ///< read only under a ProcedureHold on the key: it may have been retired
  RegistrationKey key{};
};

/// The thread that changes the registry calls its observers before its call to register or cancel returns. Calls come
/// one at a time and outside the writers' lock, so that lookups and retire never wait for an observer; other threads
/// that register or cancel do, at the end of their call. Inside a callback register, cancel, retire, attach and detach
/// fail with in_signal_handler. A callback must not throw or fork.
class RegistryObserver {
 public:
  RegistryObserver() = default;
  RegistryObserver(const RegistryObserver&) = delete;
  RegistryObserver& operator=(const RegistryObserver&) = delete;

  /// Oldest first. A procedure that is registered during attach_observer() may come twice, with the same key.
  virtual void registered(std::span<const RegisteredProcedure> procedures) noexcept = 0;
  /// Nothing holds these any more, and they must not be read. Some may not have been registered.
  virtual void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept = 0;
  /// Some procedures were retired: still_registered() tells which. Retire itself calls nobody, since it never waits.
  /// This call precedes the next of the other calls, so it comes before anything new at the same addresses.
  virtual void retired() noexcept = 0;

 protected:
  ~RegistryObserver() = default;

 private:
  friend class ObserverList;
  RegistryObserver* next_ = nullptr;
};

// Both are thread-safe but not signal-safe. They fail with in_signal_handler as register_procedure() does.

/// Calls registered() with every registered procedure before it returns. O(registered). Errors: already_registered;
/// out_of_memory.
Status attach_observer(RegistryObserver& observer) noexcept;
/// After the return no call is under way and none will come. Error: not_registered.
Status detach_observer(RegistryObserver& observer) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

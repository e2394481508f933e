// Who wants to know what is registered and cancelled: adapters that hand registered procedures on to debuggers and
// profilers. May come and go at any time.
#pragma once

#include <span>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What an observer is told of.
struct RegisteredProcedure {
  unw_dyn_info_t* info = nullptr;  ///< to be read under a ProcedureHold on the key alone: it may have been retired
  RegistrationKey key{};
};

/// Called one call at a time, by whichever thread changes the registry, before its call to register or cancel returns
/// and outside the lock of writers, so that lookups and retire never wait for an observer; other threads that register
/// or cancel do, at the end of their call. What a callback registers, cancels or retires itself is refused
/// (in_signal_handler), and so are attach and detach. Must not throw or fork.
class RegistryObserver {
 public:
  RegistryObserver() = default;
  RegistryObserver(const RegistryObserver&) = delete;
  RegistryObserver& operator=(const RegistryObserver&) = delete;

  /// Oldest first. One that was registered while the observer was being attached may come twice, with the same key.
  virtual void registered(std::span<const RegisteredProcedure> procedures) noexcept = 0;
  /// Nothing holds them any more; they are not to be read. Some may not have been registered.
  virtual void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept = 0;
  /// Some procedures were retired: still_registered() tells which. Retire itself calls nobody, since it never waits;
  /// this comes in front of the next of the other calls, so before anything new at their addresses is told.
  virtual void retired() noexcept = 0;

 protected:
  ~RegistryObserver() = default;

 private:
  friend class ObserverList;
  RegistryObserver* next_ = nullptr;
};

// Thread-safe; not signal-safe. Error in_signal_handler as with register_procedure().

/// Has called registered() with all that is registered when it returns. O(registered). Errors: already_registered;
/// out_of_memory.
Status attach_observer(RegistryObserver& observer) noexcept;
/// When it returns no call is under way and none will come. Error: not_registered.
Status detach_observer(RegistryObserver& observer) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

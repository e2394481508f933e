// Whoever would answer if this library did not: the definition of _Unwind_Find_FDE behind ours. One in each shared
// library that defines the name.
#pragma once

#include <atomic>

#include "adapters/system_unwinder/level_one_p.h"

namespace jitunwind {

class NextDefinition {
 public:
  /// `own`: the definition that must not be found again.
  constexpr explicit NextDefinition(FindFde* own) noexcept : own_(own) {}

  /// FDE of code that is not registered here, by the next definition's word; where none is known, by the static tables
  /// of the loaded modules. `caller` is who asks: should it turn out to be the run-time library that has the next
  /// definition, resolve() will find it. No lock but what the next definition has; signal-safe as far as that is.
  const void* find(void* pc, EhBases* bases, const void* caller) noexcept {
    FindFde* const next = get();
    return next ? next(pc, bases) : find_static(pc, bases, caller);
  }

  /// Looks for it, where it is not known yet. Not signal-safe; takes locks of the dynamic linker.
  void resolve() noexcept;
  /// Somebody asked while it was not known.
  bool wanted() const noexcept { return caller_.load(std::memory_order_relaxed) != nullptr; }
  bool known() const noexcept { return get() != nullptr; }
  /// Null: not known.
  FindFde* get() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  const void* find_static(void* pc, EhBases* bases, const void* caller) noexcept;
  FindFde* search() const noexcept;
  FindFde* usable(void* definition) const noexcept;

  FindFde* const own_;
  std::atomic<FindFde*> next_{nullptr};
  std::atomic<const void*> caller_{nullptr};  // the latest one that asked while it was not known
};

}  // namespace jitunwind

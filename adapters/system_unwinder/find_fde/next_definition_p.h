// Whoever would answer if this library did not: the definition of _Unwind_Find_FDE behind ours. One in each shared
// library that defines the name, and one for each jump slot that leads here.
#pragma once

#include <atomic>
#include <type_traits>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/adapters/system_unwinder/probe_p.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"

namespace jitunwind {

// A function that must not throw makes no jump of a call that may.
static_assert(std::is_nothrow_invocable_v<FindFde, void*, EhBases*>);

class NextDefinition {
 public:
  /// `own`: the definition that must not be found again.
  constexpr explicit NextDefinition(FindFde* own) noexcept : own_(own) {}

  /// What our definition in front of it answers. `caller` is who asks: should it turn out to be the run-time library
  /// that has the next definition, resolve() will find it. No lock but what the next definition has; signal-safe as far
  /// as that is.
  [[gnu::always_inline]] const void* find_or_ours(void* pc, EhBases* bases, const void* caller) noexcept {
    // Most of a stack is other code, about which a question must cost no more than without us: a jump.
    FindFde* const next = get();
    if (next != nullptr && !registered_span.may_cover(pc) && !is_probe(pc)) [[likely]]
      return next(pc, bases);
    return find_ours_first(pc, bases, caller);
  }

  /// FDE of code that is not registered here, by the next definition's word; where none is known, by the static tables
  /// of the loaded modules.
  const void* find(void* pc, EhBases* bases, const void* caller) noexcept {
    FindFde* const next = get();
    return next ? next(pc, bases) : find_static(pc, bases, caller);
  }

  /// Looks for it, where it is not known yet. Not signal-safe; takes locks of the dynamic linker.
  void resolve() noexcept;
  void set(FindFde* next) noexcept { next_.store(next, std::memory_order_release); }
  /// Somebody asked while it was not known.
  bool wanted() const noexcept { return caller_.load(std::memory_order_relaxed) != nullptr; }
  bool known() const noexcept { return get() != nullptr; }
  FindFde* own() const noexcept { return own_; }
  /// Null: not known.
  FindFde* get() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  const void* find_ours_first(void* pc, EhBases* bases, const void* caller) noexcept;
  const void* find_static(void* pc, EhBases* bases, const void* caller) noexcept;
  FindFde* search() const noexcept;
  FindFde* usable(void* definition) const noexcept;

  FindFde* const own_;
  std::atomic<FindFde*> next_{nullptr};
  std::atomic<const void*> caller_{nullptr};  // the latest one that asked while it was not known
};

/// `next`: asked where the procedure is not ours.
template <class Next>
const void* find_ours_or(void* pc, EhBases* bases, Next next) noexcept {
  RegisteredFde registered;
  RegisteredFde::Kind kind = find_registered_fde(pc, registered);
  if (kind == RegisteredFde::Kind::others_first) {
    if (const void* const known = next()) return known;
    kind = find_registered_fde(pc, registered, true);
    if (kind == RegisteredFde::Kind::not_registered) return nullptr;
  }
  if (kind == RegisteredFde::Kind::not_registered) return next();
  if (kind == RegisteredFde::Kind::none) return nullptr;
  *bases = registered.bases;
  return registered.fde;
}

}  // namespace jitunwind

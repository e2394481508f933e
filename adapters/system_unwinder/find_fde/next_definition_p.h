// The definition of _Unwind_Find_FDE that would be called without this library. Each shared library that defines the
// name has one, and so has each jump slot that leads here.
#pragma once

#include <atomic>
#include <type_traits>

#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"

namespace jitunwind {

// An object stays loaded while it has a handle; a static program has none. These three are not signal-safe: they take
// locks of the dynamic linker, and wait for threads in dlopen() or dlclose(), constructors included.

/// Null: the object is not loaded.
void* open_loaded(const char* name) noexcept;
/// The handle of the object that contains an address.
void* open_loaded_at(const void* at) noexcept;
void close_handle(void* handle) noexcept;

// The compiler turns a call in a noexcept function into a jump only if the callee cannot throw.
static_assert(std::is_nothrow_invocable_v<FindFde, void*, EhBases*>);

class NextDefinition {
 public:
  /// `own`: the definition that must not be found again.
  constexpr explicit NextDefinition(FindFde* own) noexcept : own_(own) {}

  /// The result of the preceding definition of this library. `caller` is the address of the caller: if it belongs to
  /// the run-time library that has the next definition, resolve() finds it there. Takes no lock but those of the next
  /// definition; signal-safe if that is.
  [[gnu::always_inline]] const void* find_or_ours(void* pc, EhBases* bases, const void* caller) noexcept {
    // Most of a stack is other code, whose lookup must cost no more than without this library: a jump.
    FindFde* const next = get();
    if (next != nullptr && !registered_span.may_cover(pc) && !is_probe(pc)) [[likely]]
      return next(pc, bases);
    return find_ours_first(pc, bases, caller);
  }

  /// FDE of code that is not registered here, by the next definition; if that is unknown, by the static tables of the
  /// loaded modules.
  const void* find(void* pc, EhBases* bases, const void* caller) noexcept {
    FindFde* const next = get();
    return next ? next(pc, bases) : find_static(pc, bases, caller);
  }

  /// Looks for the next definition unless it is known. Not signal-safe; takes locks of the dynamic linker.
  void resolve() noexcept;
  /// Before anybody else knows of the definition.
  void be(FindFde* own) noexcept { own_ = own; }
  void set(FindFde* next) noexcept { next_.store(next, std::memory_order_release); }
  /// True when a caller needed the next definition while it was unknown.
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

  FindFde* own_;
  std::atomic<FindFde*> next_{nullptr};
  std::atomic<const void*> caller_{nullptr};  // the latest caller while it was unknown
};

/// `next` is called if the procedure is not registered here.
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

/// The definition that is called for code that is not registered.
NextDefinition& next_find_fde() noexcept;

}  // namespace jitunwind

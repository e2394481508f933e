// The name that libgcc_s looks up in the process for every frame of every throw and every backtrace(), so that the
// first definition in search order answers: ours, for registered procedures. Two forms more:
//   weak, so that a static libgcc's own definition, where that is linked as well (its object has __register_frame,
//   too), takes precedence instead of colliding; -Wl,--wrap=_Unwind_Find_FDE has a static libgcc call
//   __wrap__Unwind_Find_FDE, whatever else is linked.
#include "adapters/system_unwinder/find_fde_p.h"
#include "adapters/system_unwinder/probe_p.h"
#include "adapters/system_unwinder/registered_fde_p.h"
#include "dyn_info/registered_span_p.h"

using jitunwind::EhBases;
using jitunwind::FindFde;

extern "C" {
// The exported name may lead to another definition, also from here.
[[gnu::visibility("hidden")]] FindFde jitunwind_find_fde;
[[gnu::visibility("default"), gnu::weak, gnu::alias("jitunwind_find_fde")]] FindFde _Unwind_Find_FDE;
[[gnu::visibility("default")]] FindFde __wrap__Unwind_Find_FDE;
[[gnu::weak]] FindFde __real__Unwind_Find_FDE;
}

namespace jitunwind {
namespace {

constinit NextDefinition next_definition(&jitunwind_find_fde);

/// The name may be asked for before anything is registered.
[[gnu::constructor]] void resolve_at_load() { next_definition.resolve(); }

/// `next`: asked where the procedure is not ours.
template <class Next>
const void* find(void* pc, EhBases* bases, Next next) noexcept {
  RegisteredFde registered;
  const RegisteredFde::Kind kind = find_registered_fde(pc, registered);
  if (kind == RegisteredFde::Kind::not_registered) return next();
  if (kind == RegisteredFde::Kind::none) return nullptr;
  *bases = registered.bases;
  return registered.fde;
}

[[gnu::noinline]] const void* find_ours_or_next(void* pc, EhBases* bases, const void* caller) noexcept {
  return find(pc, bases, [&] { return next_definition.find(pc, bases, caller); });
}

}  // namespace

NextDefinition& next_find_fde() noexcept { return next_definition; }

}  // namespace jitunwind

extern "C" {

const void* jitunwind_find_fde(void* pc, EhBases* bases) {
  // Most of a stack is other code, about which a question must cost no more than without us: a jump.
  FindFde* const next = jitunwind::next_definition.get();
  if (next != nullptr && !jitunwind::registered_span.may_cover(pc) && !jitunwind::is_probe(pc)) [[likely]]
    return next(pc, bases);
  return jitunwind::find_ours_or_next(pc, bases, __builtin_return_address(0));
}

const void* __wrap__Unwind_Find_FDE(void* pc, EhBases* bases) {
  const void* const caller = __builtin_return_address(0);
  return jitunwind::find(pc, bases, [&] {
    FindFde* const real = &__real__Unwind_Find_FDE;
    // Where libgcc's own is not linked the wrapped name is ours.
    if (real != nullptr && real != &jitunwind_find_fde) return real(pc, bases);
    return jitunwind::next_definition.find(pc, bases, caller);
  });
}
}

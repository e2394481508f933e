// The name that libgcc_s looks up in the process for every frame of every throw and every backtrace(), so that the
// first definition in search order answers: ours, for registered procedures. Two forms more:
//   weak, so that a static libgcc's own definition, where that is linked as well (its object has __register_frame,
//   too), takes precedence instead of colliding; -Wl,--wrap=_Unwind_Find_FDE has a static libgcc call
//   __wrap__Unwind_Find_FDE, whatever else is linked.
#include "jitunwind/adapters/system_unwinder/find_fde/find_fde_p.h"

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

/// The name may be asked for before anything is registered, and constructors may register and throw.
[[gnu::constructor(101)]] void resolve_at_load() { next_definition.resolve(); }

}  // namespace

NextDefinition& next_find_fde() noexcept { return next_definition; }

}  // namespace jitunwind

extern "C" {

const void* jitunwind_find_fde(void* pc, EhBases* bases) noexcept {
  return jitunwind::next_definition.find_or_ours(pc, bases, __builtin_return_address(0));
}

const void* __wrap__Unwind_Find_FDE(void* pc, EhBases* bases) noexcept {
  const void* const caller = __builtin_return_address(0);
  return jitunwind::find_ours_or(pc, bases, [&] {
    FindFde* const real = &__real__Unwind_Find_FDE;
    // Where libgcc's own is not linked the wrapped name is ours.
    if (real != nullptr && real != &jitunwind_find_fde) return real(pc, bases);
    return jitunwind::next_definition.find(pc, bases, caller);
  });
}
}

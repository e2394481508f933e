// libgcc_s looks this name up in the process for every frame of every throw and every backtrace(). The first definition
// in search order is used: this one, for registered procedures. Two forms serve a static libgcc. The definition is
// weak, so that libgcc's own one, if it is linked as well (its object has __register_frame, too), takes precedence
// instead of colliding. A static libgcc calls __wrap__Unwind_Find_FDE under -Wl,--wrap=_Unwind_Find_FDE, whatever else
// is linked.
#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"

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

/// The name may be called before anything is registered, and constructors may register and throw.
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
    // The wrapped name is this definition if libgcc's own is not linked.
    if (real != nullptr && real != &jitunwind_find_fde) return real(pc, bases);
    return jitunwind::next_definition.find(pc, bases, caller);
  });
}
}

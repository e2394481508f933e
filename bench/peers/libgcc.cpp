// libgcc: each registration is a section. Before release 13 the first lookup sorts them into a list, in quadratic time.
// This program is also linked with the library that listens, as another peer.
#include <unwind.h>

#include "bench/peers/level_one.h"

namespace bench {

namespace {

std::size_t backtrace(std::span<void*> into) {
  struct Progress {
    std::span<void*> into;
    std::size_t count;
  } progress{into, 0};
  const auto store = [](_Unwind_Context* context, void* argument) {
    auto& to = *static_cast<Progress*>(argument);
    to.into[to.count++] = reinterpret_cast<void*>(_Unwind_GetIP(context));
    return to.count == to.into.size() ? _URC_NORMAL_STOP : _URC_NO_REASON;
  };
  _Unwind_Backtrace(store, &progress);
  return progress.count;
}

constexpr Walker k_walkers[]{{"_Unwind_Backtrace", backtrace, true}};
FrameRegistrar registrar(FrameRegistrar::Argument::section, 1'000'000);
Registrar* const k_registrars[]{&registrar};

}  // namespace

const char* thrower() { return "libgcc_s"; }
std::span<const Walker> walkers() { return k_walkers; }
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench

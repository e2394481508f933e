// LLVM libunwind: each registration is an FDE in an array that is searched and shortened linearly.
#include <libunwind.h>

#include "bench/peers/level_one.h"
#include "bench/peers/step_walker.h"

namespace bench {

namespace {

constexpr Walker k_walkers[]{{"unw_step", unw_step_walk, true}};
FrameRegistrar registrar(FrameRegistrar::Argument::fde, 40'000);
Registrar* const k_registrars[]{&registrar};

}  // namespace

const char* thrower() { return "libgcc_s"; }
std::span<const Walker> walkers() { return k_walkers; }
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench

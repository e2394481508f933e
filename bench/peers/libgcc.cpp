// libgcc: each registration is a section. Before release 13 the first lookup sorts them into a list, in quadratic time.
// This program is also linked with the library that listens, as another peer.
#include "bench/peers/backtrace_walker.h"
#include "bench/peers/level_one.h"

namespace bench {

namespace {

constexpr Walker k_walkers[]{{"_Unwind_Backtrace", level_one_backtrace, true}};
FrameRegistrar registrar(FrameRegistrar::Argument::section, 1'000'000);
Registrar* const k_registrars[]{&registrar};

}  // namespace

const char* thrower() { return "libgcc_s"; }
std::span<const Walker> walkers() { return k_walkers; }
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench

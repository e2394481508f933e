// Descriptors that nobody vouches for: any memory that can be read. The registry knows which of it are registered, and
// what was said to stand behind them.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

namespace jitunwind {

/// Whether `di` is registered now, and with `behind`. A look-up of a few loads. Signal-safe.
bool is_registered(const unw_dyn_info_t* di, Behind behind) noexcept;

/// cancel_procedure() of what was registered with `behind`. All else is not registered, to whoever asks so.
Status cancel_procedure(unw_dyn_info_t* di, Behind behind) noexcept;

}  // namespace jitunwind

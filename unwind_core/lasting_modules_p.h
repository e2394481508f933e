// Modules that the dynamic linker never unloads: what is known of their code holds until the process ends.
#pragma once

#include "unwind_core/address.h"

namespace jitunwind {

/// The one that covers `at`; empty: none, or it was not looked at yet. O(log n), thread-safe, signal-safe.
AddrRange find_lasting_module(Addr at) noexcept;

}  // namespace jitunwind

// Modules that the dynamic linker never unloads: what is known of their code holds until the process ends.
#pragma once

#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

/// The one that covers `at`, described for good, `text` by its first executable segment. Null: there is none, or it was
/// not looked at yet. O(log n), thread-safe, signal-safe.
const Module* find_lasting_module(Addr at) noexcept;

}  // namespace jitunwind

// The finder for targets without modules: their code is known only by registered procedures or callbacks.
#pragma once

#include "jitunwind/unwind_core/module.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Finds none. Signal-safe.
class NoModules final : public ModuleFinder {
 public:
  bool find(Addr, Module&) const noexcept override { return false; }
};

}  // namespace jitunwind
#pragma GCC visibility pop

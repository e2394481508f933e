// The finder of targets without modules: of those whose code is known by registered procedures or callbacks alone.
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

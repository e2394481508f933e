// The functions of libjitunwind-gdb, which the core calls for programs that attach GDB.
#pragma once

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "jitunwind/sdk/c/process.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// The caller of each but the last is inside a WritingScope.
struct GdbFunctions {
  Status (*attach)() noexcept;
  Status (*detach)() noexcept;
  Status (*flush)() noexcept;
  GdbStatistics (*statistics)() noexcept;
  const char* (*attach_by_environment)() noexcept;  ///< attach_gdb_in_writer()
  ju_status (*statistics_get)(ju_gdb_statistics* statistics, ju_error* error);
};
extern "C" const GdbFunctions* jitunwind_gdb_functions() noexcept;
/// The library calls it when it is loaded. It is never unloaded.
[[gnu::visibility("default")]] void gdb_comes(const GdbFunctions& functions) noexcept;

}  // namespace jitunwind

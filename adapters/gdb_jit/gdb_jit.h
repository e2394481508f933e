// Registered procedures for GDB, LLDB and whoever else reads GDB's interface for code made at run time ("JIT
// Compilation Interface" in GDB's manual): their names and their rows, as ELF files in memory. docs/debuggers.md.
//
// Nothing is made until it is asked for: by attach_gdb(), or by JITUNWIND_ATTACH=gdb in the environment, which the
// first registration of the process looks at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

// All are thread-safe and none is signal-safe: error in_signal_handler as with register_procedure().

/// From here on debuggers know what is registered, and what is registered already. Does nothing where it is attached.
/// Error out_of_memory.
///
/// Without a debugger each procedure is known before its registration returns, so that a debugger may come at any time.
/// Under a debugger, which stops the process for every file that it is told of, the same is true until there were many
/// of these stops and they have taken a while; then it is true of the first of a batch, and the others are handed on
/// together some 30 ms later. Cancel returns when no debugger knows the procedure any more. What was retired goes with
/// the next change of the registry, or by flush_gdb().
Status attach_gdb() noexcept;
/// Debuggers forget what they were told. Does nothing where it is not attached.
Status detach_gdb() noexcept;
/// What waits to be handed on together is handed on now.
Status flush_gdb() noexcept;

/// What debuggers are shown, at one moment.
struct GdbStatistics {
  bool attached = false;
  unsigned copies = 0;         ///< of this library in the process that are attached, each with procedures of its own
  std::size_t procedures = 0;  ///< that debuggers know
  std::size_t waiting = 0;     ///< to be handed on together
  std::size_t files = 0;
  std::size_t bytes = 0;      ///< of the files
  std::uint64_t refused = 0;  ///< procedures that debuggers know by name only, or not at all
  Error latest_refusal{};     ///< why; unspecified when there was none
};
/// Thread-safe; not signal-safe.
GdbStatistics gdb_statistics() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

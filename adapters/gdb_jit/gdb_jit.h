// Registered procedures for GDB, LLDB and other readers of GDB's interface for code made at run time ("JIT Compilation
// Interface" in GDB's manual). Names and rows are published as ELF files in memory. docs/debuggers.md.
//
// No file is made until attach_gdb() is called, or until the first registration of the process finds
// JITUNWIND_ATTACH=gdb in the environment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

// All functions are thread-safe and none is signal-safe: error in_signal_handler as with register_procedure().

/// Publishes the registered procedures to debuggers, now and after each registration. Does nothing if it is attached
/// already. Error out_of_memory.
///
/// If no debugger is attached to the process, each procedure is published before its registration returns, so that a
/// debugger may come at any time. A debugger stops the process for every file it is told of. Under a debugger the
/// guarantee therefore holds until there were many of these stops and they took a while. After that it holds for the
/// first procedure of a batch; the others are published together some 30 ms later. Cancel returns when no debugger
/// knows the procedure any more. Retired procedures go with the next change of the registry, or by flush_gdb().
Status attach_gdb() noexcept;
/// Makes debuggers drop all files. Does nothing if it is not attached.
Status detach_gdb() noexcept;
/// Publishes the waiting procedures now.
Status flush_gdb() noexcept;

/// The state of the published files at one moment.
struct GdbStatistics {
  bool attached = false;
  unsigned copies = 0;         ///< attached copies of this library in the process, each with its own procedures
  std::size_t procedures = 0;  ///< number that debuggers know
  std::size_t waiting = 0;     ///< number that wait to be published together
  std::size_t files = 0;
  std::size_t bytes = 0;      ///< size of all files
  std::uint64_t refused = 0;  ///< procedures that debuggers know by name only, or not at all
  Error latest_refusal{};     ///< reason for the latest refusal; unspecified if there was none
};
/// Thread-safe; not signal-safe.
GdbStatistics gdb_statistics() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

// Events of Intel's interface for JITs (ITT, jitprofiling.h of ittapi), as an agent is given them in 64-bit processes.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What an event says.
struct IttEvent {
  enum class Kind : std::uint8_t {
    other,     ///< nothing of code
    loaded,    ///< `method`, `code` and `name`, and `lines` if there are any
    unloaded,  ///< `method`
  };
  Kind kind = Kind::other;
  std::uint32_t method = 0;  ///< the engine's number of it
  AddrRange code{};
  std::string name;
  SourceLines lines{};  ///< only where the whole table can be read
};

/// `event` and `data` are the arguments of NotifyEvent(). Names are cut at 4 KiB. Error unreadable_memory, e_range (no
/// code, or code that ends behind the address space). Allocates.
Result<IttEvent> read_itt_event(std::int32_t event, Addr data, const Memory& memory);

}  // namespace jitunwind
#pragma GCC visibility pop

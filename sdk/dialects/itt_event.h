// Events of Intel's interface for JITs (ITT, jitprofiling.h of ittapi), as agents in 64-bit processes receive them.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A decoded event.
struct IttEvent {
  enum class Kind : std::uint8_t {
    other,     ///< an event that does not concern code
    loaded,    ///< `method`, `code` and `name`, and `lines` if there are any
    unloaded,  ///< `method`
  };
  Kind kind = Kind::other;
  std::uint32_t method = 0;  ///< the method's number, which the engine chose
  AddrRange code{};
  std::string name;
  SourceLines lines{};  ///< empty if part of the table cannot be read
};

/// `event` and `data` are the arguments of NotifyEvent(). Names are cut at 4 KiB. Errors: unreadable_memory; e_range
/// (there is no code, or it ends behind the address space). Allocates.
Result<IttEvent> read_itt_event(std::int32_t event, Addr data, const Memory& memory);

}  // namespace jitunwind
#pragma GCC visibility pop

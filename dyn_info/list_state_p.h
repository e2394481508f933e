// The head of a target's list of procedures.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

struct ListState {
  std::uint32_t generation = 0;  ///< odd while a writer is at work
  Addr first = 0;                ///< descriptor of the newest procedure; 0: there is none
};

/// Of the unw_dyn_info_list_t at `head`. Errors: as unreadable() says; unsupported_version.
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept;

}  // namespace jitunwind

// The head of a target's list of procedures, and the latest changes of the list.
#pragma once

#include <cstdint>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

struct ListState {
  std::uint32_t generation = 0;  ///< odd while a writer is at work
  Addr first = 0;                ///< descriptor of the newest procedure; 0: there is none
  bool is_changing() const noexcept { return generation % 2 != 0; }
};

/// Reads the unw_dyn_info_list_t at `head`. Errors: those of unreadable(); unsupported_version.
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept;

/// The number of changes that have made a list, which must not be changing. Empty: the number is not kept, or cannot be
/// read.
std::optional<std::uint64_t> count_changes(const ListHead::Changes& where, const Memory& memory, const Arch& arch,
                                           MemoryWindow& window) noexcept;
/// Reads that list's changes of the numbers from `first` on, the oldest first. Empty: not all of them are kept. Throws
/// std::bad_alloc.
std::optional<std::vector<ListIndex::Change>> read_changes(const ListHead::Changes& where, std::uint64_t first,
                                                           const Memory& memory, const Arch& arch,
                                                           MemoryWindow& window);

}  // namespace jitunwind

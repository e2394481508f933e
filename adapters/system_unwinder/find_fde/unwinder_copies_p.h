// The copies of libgcc_s in this process: the system's, others that come with somebody's libraries under names of their
// own, those of other namespaces (dlmopen). Each keeps exceptions going for whoever is bound to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/adapters/system_unwinder/probe_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// An object that defines both functions. Whom it asks is its own business: the jump slot may be missing, or not used.
struct UnwinderCopy {
  std::uintptr_t* slot = nullptr;  ///< the word by which it calls _Unwind_Find_FDE; null: none that can be read
  FindFde* definition = nullptr;   ///< its own one
  FindEnclosingFunction* ask = nullptr;
  Addr bias = 0;
  bool stays = false;  ///< it is there, and relocated, for as long as this library is
};

/// None: the object is something else. Reads memory alone.
std::optional<UnwinderCopy> read_unwinder_copy(const ListedObject& object) noexcept;

/// What stands in the slot of a copy that may be about to be loaded, or to be used for the first time.
enum class SlotState : std::uint8_t {
  unrelocated,  ///< the dynamic linker has not come to it yet
  unbound,      ///< the first call will bind it
  bound,
};
SlotState state_of_slot(const UnwinderCopy& copy, std::uintptr_t value) noexcept;

/// Keeps the object loaded that has `code`, where that may be unloaded and is not the copy's own: somebody else has put
/// it into the slot. Memory that no object has stays as it is. Not signal-safe.
void keep_loaded(FindFde* code, const UnwinderCopy& copy) noexcept;

}  // namespace jitunwind

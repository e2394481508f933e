// The copies of libgcc_s in this process: the system's, copies that come with other libraries under names of their own,
// and those of other namespaces (dlmopen). Each unwinds exceptions of the objects that are bound to it.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/adapters/system_unwinder/probe_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// An object that defines both functions. Its way to _Unwind_Find_FDE may be different: the jump slot may be missing,
/// or not used.
struct UnwinderCopy {
  std::uintptr_t* slot =
      nullptr;  ///< the word through which it calls _Unwind_Find_FDE; null: there is none that can be read
  FindFde* definition = nullptr;  ///< its own definition
  FindEnclosingFunction* ask = nullptr;
  Addr bias = 0;
  bool stays = false;  ///< it stays loaded, and relocated, as long as this library
};

/// None: the object is no such copy. Reads memory only.
std::optional<UnwinderCopy> read_unwinder_copy(const ListedObject& object) noexcept;

/// The state of the slot of a copy that may be about to be loaded, or to be used for the first time.
enum class SlotState : std::uint8_t {
  unrelocated,  ///< the dynamic linker has not relocated it yet
  unbound,      ///< the first call will bind it
  bound,
};
SlotState state_of_slot(const UnwinderCopy& copy, std::uintptr_t value) noexcept;

/// Keeps the object that has `code` loaded, if it may be unloaded and is not the copy itself: foreign code has put it
/// into the slot. Memory outside of objects is not affected. Not signal-safe.
void keep_loaded(FindFde* code, const UnwinderCopy& copy) noexcept;

}  // namespace jitunwind

#include "jitunwind/adapters/system_unwinder/find_fde/unwinder_copies_p.h"

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/modules/loaded_object_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"

extern "C" [[gnu::weak]] jitunwind::FindEnclosingFunction _Unwind_FindEnclosingFunction;

namespace jitunwind {
namespace {

/// Whether one object contains both addresses.
bool are_in_one_object(Addr a, Addr b) noexcept {
  Module module;
  return local_modules().find(a, module) && module.range.contains(b);
}

}  // namespace

std::optional<UnwinderCopy> read_unwinder_copy(const ListedObject& listed) noexcept {
  DynamicObject object(local_space().memory, local_space().arch, listed.bias, listed.dynamic);
  const auto find = object.find_function("_Unwind_Find_FDE");
  if (!find) return std::nullopt;
  const auto ask = object.find_function("_Unwind_FindEnclosingFunction");
  // A static libgcc hides its functions. The one that is linked to this library calls this library's definition, or
  // calls through a slot as well.
  const bool is_own = listed.dynamic == own_dynamic_section();
  if (!ask && !is_own) return std::nullopt;
  UnwinderCopy copy;
  copy.definition = reinterpret_cast<FindFde*>(find->address);
  copy.ask = ask ? reinterpret_cast<FindEnclosingFunction*>(ask->address) : &_Unwind_FindEnclosingFunction;
  copy.bias = listed.bias;
  // Libraries that this one is bound to are not unloaded before it.
  copy.stays = copy.ask == &_Unwind_FindEnclosingFunction || find_lasting_module(listed.dynamic) != nullptr;
  MemoryWindow window;
  const Addr slot = object.find_slot(*find);
  if (slot != 0 && local_space().memory.view(slot, sizeof(std::uintptr_t), window) != nullptr)
    copy.slot = static_cast<std::uintptr_t*>(pointer_to(slot));
  if (!ask && copy.slot == nullptr) return std::nullopt;
  return copy;
}

/// An unbound slot leads to its origin, the procedure linkage table; before relocation it holds the address in the
/// file.
SlotState state_of_slot(const UnwinderCopy& copy, std::uintptr_t value) noexcept {
  const Addr slot = address_of(copy.slot);
  if (value == 0) return SlotState::unrelocated;
  if (value == reinterpret_cast<std::uintptr_t>(copy.definition)) return SlotState::bound;
  if (are_in_one_object(value, slot)) return SlotState::unbound;
  return are_in_one_object(value + copy.bias, slot) ? SlotState::unrelocated : SlotState::bound;
}

void keep_loaded(FindFde* code, const UnwinderCopy& copy) noexcept {
  const Addr at = reinterpret_cast<std::uintptr_t>(code);
  Module module;
  if (!local_modules().find(at, module) || module.range.contains(address_of(copy.slot)) ||
      find_lasting_module(at) != nullptr)
    return;
  (void)open_loaded_at(pointer_to(at));
}

}  // namespace jitunwind

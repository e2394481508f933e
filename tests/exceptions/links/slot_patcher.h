// libgcc_s's jump slot as anybody may find and use it: by its relocations (System V gABI, chapter 5), with no word of
// the library that is tested.
#pragma once

#include <cstdint>

using FindFde = const void*(void* pc, void* bases);

/// Returns the slot of the first loaded libgcc_s; null: there is none, or it has no slot.
std::uintptr_t* find_slot();
/// libgcc_s's own function, whatever stands in the slot.
FindFde* find_definition();
/// Stores it, in pages that are read-only, too, which they are again afterwards.
void store(std::uintptr_t* slot, std::uintptr_t value);
/// Decides by /proc/self/maps.
bool is_writable(const void* at);

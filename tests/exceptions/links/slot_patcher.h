// libgcc_s's jump slot as any program may find and use it: by its relocations (System V gABI, chapter 5), without the
// library under test.
#pragma once

#include <cstdint>

using FindFde = const void*(void* pc, void* bases);

/// Returns the slot of the first loaded libgcc_s; null: there is none, or it has no slot.
std::uintptr_t* find_slot();
/// Returns libgcc_s's own function, whatever the slot contains.
FindFde* find_definition();
/// Stores the value, in read-only pages, too; they are read-only again afterwards.
void store(std::uintptr_t* slot, std::uintptr_t value);
/// Decides by /proc/self/maps.
bool is_writable(const void* at);

// Another project's library that takes libgcc_s's jump slot as long as it is loaded, and restores the earlier value if
// the slot is still its own.
#include <atomic>

#include "tests/exceptions/links/slot_patcher.h"

namespace {

std::atomic<FindFde*> g_stood_there{nullptr};

const void* hook(void* pc, void* bases) { return g_stood_there.load()(pc, bases); }

[[gnu::constructor]] void take() {
  g_stood_there = reinterpret_cast<FindFde*>(*find_slot());
  store(find_slot(), reinterpret_cast<std::uintptr_t>(&hook));
}

[[gnu::destructor]] void put_back() {
  if (*find_slot() == reinterpret_cast<std::uintptr_t>(&hook))
    store(find_slot(), reinterpret_cast<std::uintptr_t>(g_stood_there.load()));
}

}  // namespace

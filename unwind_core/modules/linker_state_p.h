// The state that the dynamic linker shows debuggers: its namespaces, and whether it is about to change them.
#pragma once

#include <link.h>

#include <atomic>

// A static program has none.
#pragma weak _r_debug
#ifndef __GLIBC__
// musl declares neither, and defines the second alone.
extern "C" r_debug _r_debug;
extern "C" ElfW(Dyn) _DYNAMIC[];
#endif

namespace jitunwind {

/// A namespace of the linker: struct r_debug_extended of glibc's link.h, from r_version 2 on. The list is in the order
/// of their numbers: dlmopen() takes the lowest that is free, and none ever leaves the list.
struct LinkerSpace {
  r_debug head;
  LinkerSpace* next;
};

/// Null: there is no list of several.
inline const LinkerSpace* linker_spaces() noexcept {
  if (&_r_debug == nullptr || _r_debug.r_version < 2) return nullptr;
  return reinterpret_cast<const LinkerSpace*>(&_r_debug);
}

/// False while it maps or unmaps objects, in whatever namespace: it may name some that are gone, and hold its locks. A
/// child that was forked meanwhile keeps that state, and those locks, for good. Signal-safe.
inline bool is_linker_consistent() noexcept {
  const auto is_consistent = [](const r_debug& space) {
    auto& state = const_cast<decltype(space.r_state)&>(space.r_state);
    return std::atomic_ref(state).load(std::memory_order_acquire) == r_debug::RT_CONSISTENT;
  };
  if (&_r_debug == nullptr) return true;
  if (!is_consistent(_r_debug)) return false;
  for (const LinkerSpace* space = linker_spaces(); space; space = space->next)
    if (!is_consistent(space->head)) return false;
  return true;
}

}  // namespace jitunwind

// The ways to the modules of this process.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/image/module_cache_p.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/modules/local_modules.h"

// glibc declares _dl_find_object from 2.35 on, and this macro with it. JITUNWIND_NO_DL_FIND_OBJECT: not asked for.
#if defined(DLFO_EH_SEGMENT_TYPE) && !defined(JITUNWIND_NO_DL_FIND_OBJECT)
#define JITUNWIND_HAS_DL_FIND_OBJECT
#elif !defined(__GLIBC__)
#define JITUNWIND_KEEPS_OBJECT_LIST
#endif

namespace jitunwind {

#ifdef JITUNWIND_KEEPS_OBJECT_LIST
/// The structure that glibc has: linked_objects.cpp.
struct dl_find_object {
  void* dlfo_map_start;
  void* dlfo_map_end;
  link_map* dlfo_link_map;
  void* dlfo_eh_frame;  ///< .eh_frame_hdr
};
/// 0: `out` is the object that covers `at`. Takes no lock; signal-safe.
int _dl_find_object(void* at, dl_find_object* out) noexcept;
/// Reads the list of objects again if it has changed. Not signal-safe: it waits for threads in dlopen().
void renew_linked_objects() noexcept;
inline constexpr bool k_unloads_nothing = true;
#else
inline constexpr bool k_unloads_nothing = false;
inline void renew_linked_objects() noexcept {}
#endif

/// Whether the C library that this program runs with has _dl_find_object, or this library has one in its place.
[[gnu::visibility("default")]] bool has_dl_find_object() noexcept;

/// Finds the module of code on a live stack, which is looked at in place.
bool find_module(Addr at, Module& out) noexcept;
/// Finds the module of code that may be unloaded meanwhile. Nothing of the object, and nothing of the linker's, is
/// looked at in place.
bool find_copied_module(Addr at, Module& out) noexcept;
bool find_module_by(PhdrIteration iterate, Addr at, Module& out) noexcept;

/// Copies the path, cut to fit. Returns its whole length; 0: there is none.
std::size_t copy_module_path(Addr at, std::span<char> into) noexcept;
std::size_t copy_path_by(PhdrIteration iterate, Addr at, std::span<char> into) noexcept;

/// The module at `begin`, its first mapped address. Its first page is copied in one piece, so that all of it is of the
/// same object. The module is as read_module() fills it, without path, and with Module::memory. False: no ELF and
/// program headers can be read there, or no segment of theirs covers `at`. Signal-safe.
bool copy_module(Addr begin, Addr at, Module& out) noexcept;

/// The object that a module was, for find_module_files(). Signal-safe.
class LocalObject final : public WantedObject {
 public:
  /// `modules` finds what may be unloaded without looking at it in place.
  LocalObject(const Module& module, const ModuleFinder& modules) noexcept : module_(module), modules_(modules) {}

  std::span<const std::byte> build_id() noexcept override;
  const ElfImage* image() noexcept override;
  const char* path() noexcept override;
  Addr place() noexcept override { return module_.is_lasting ? 0 : module_.range.begin; }
  bool is_still_at(Addr place, const ObjectIdentity& identity) noexcept override;

 private:
  bool is_of_it(const ElfImage& image) const noexcept;

  const Module& module_;
  const ModuleFinder& modules_;
  PathBuffer path_;
  Mapped<MemoryParts> memory_;
  std::optional<ElfImage> image_;
  bool is_looked_at_ = false;
};

}  // namespace jitunwind

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

// A loaded ELF object as the dynamic linker tells of it, and what its program headers say.
#pragma once

#include <link.h>

#include <span>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

struct LoadedObject {
  Addr bias = 0;
  const char* name = "";
  std::span<const ElfW(Phdr)> headers{};
};

/// An object as dl_iterate_phdr() tells of it.
LoadedObject listed_object(const dl_phdr_info& info) noexcept;

/// The bytes of this process in `range`.
SectionBytes bytes_of(AddrRange range) noexcept;

/// The loader calls the main program "".
[[gnu::visibility("default")]] const char* path_of(const char* name) noexcept;

/// The program headers of an object. The kernel tells where those of the main program are. Any other has an ELF header,
/// which linkers put at the start of the first segment. Empty when it is not there.
std::span<const ElfW(Phdr)> headers_of(AddrRange map, MemoryWindow& window) noexcept;

/// False when none of the segments covers `at`.
bool read_module(const LoadedObject& object, Addr at, Module& out) noexcept;

/// The build id of an object of this process whose first page is at `begin`. A build id that is not on that page, where
/// linkers put it, or cannot be read there, counts as none.
std::span<const std::byte> build_id_of(const LoadedObject& object, Addr begin, MemoryWindow& window) noexcept;

/// Has the module's build id, unless it is too long.
void keep_build_id(std::span<const std::byte> id, Module& module) noexcept;

/// The module that covers `at`, if the dynamic linker never unloads it: what is known of its code holds until the
/// process ends. It is described for good, `text` by its first executable segment. Null: there is none, or it was not
/// looked at yet. O(log n), thread-safe, signal-safe.
[[gnu::visibility("default")]] const Module* find_lasting_module(Addr at) noexcept;

}  // namespace jitunwind

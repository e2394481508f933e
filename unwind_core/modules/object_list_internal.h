// The objects of this process as the dynamic linker lists them.
#pragma once

#include <link.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

struct ListedObject {
  Addr bias = 0;               ///< run-time address less the one in the file
  Addr dynamic = 0;            ///< the dynamic section
  const char* name = nullptr;  ///< its path, "" of the program; lives as long as the object
};

/// Counts the objects that came and went, in all namespaces. While both counts stay, so does the list.
struct ListVersion {
  std::uint64_t loads = 0;  ///< 0: not known
  std::uint64_t unloads = 0;
  bool operator==(const ListVersion&) const = default;
};

/// Loads of files that this library has made, which have no functions of their own; each is counted before it happens.
[[gnu::visibility("default")]] extern constinit std::atomic<std::uint64_t> own_loads;

class ObjectVisitor {
 public:
  /// Is called with the list's lock, so that the object stays there. It must not call what may take another lock of the
  /// dynamic linker, as lazily bound functions do.
  virtual void visit(const ListedObject& object) noexcept = 0;

 protected:
  ~ObjectVisitor() = default;
};

// Thread-safe, not signal-safe. These wait for the list's lock alone, never for constructors. musl calls without it.

/// All objects of this library's own namespace, then those of others, as far as the C library tells of them (glibc
/// 2.35). Those being loaded may be among them, and may not be relocated yet.
void visit_objects(ObjectVisitor& visitor) noexcept;
/// Those of the own namespace alone, in the order in which debuggers list them. Returns what the list is then; unknown,
/// and nothing was visited, where the list cannot be had.
[[gnu::visibility("default")]] ListVersion visit_own_objects(ObjectVisitor& visitor) noexcept;

/// After this call fork waits for threads that these functions have in the list, and these threads wait for fork. The
/// first of the functions calls it as well. A component must call this first if its fork handler takes a lock under
/// which it also calls the functions. Otherwise fork would wait for that lock, and its holder for fork.
void watch_forks_of_object_list() noexcept;

/// The dynamic section of the object that this library is linked into. 0: a static program has none.
Addr own_dynamic_section() noexcept;

/// The version of the list; unknown where the list cannot be had.
[[gnu::visibility("default")]] ListVersion list_version() noexcept;

/// Runs `action` with the list's lock. One thread at a time is in it, of all copies of this library and of whoever else
/// takes the lock. It must not call what visit() must not.
void with_object_list(void (*action)(void*), void* argument) noexcept;
/// Runs `action` only if the list still is what it was. Then all objects that were in it stay there meanwhile. True:
/// `action` ran.
[[gnu::visibility("default")]] bool with_object_list(const ListVersion& expected, void (*action)(void*),
                                                     void* argument) noexcept;

/// Runs a function object, as above.
template <class Action>
bool while_they_stay(const ListVersion& expected, Action action) noexcept {
  return with_object_list(
      expected, [](void* of) { (*static_cast<Action*>(of))(); }, &action);
}

// A loaded ELF object as the dynamic linker tells of it, and what its program headers say.

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

#pragma GCC visibility push(default)
namespace jitunwind {

/// A function by its address, null for none.
struct LoadedFunction {
  void* function = nullptr;
  const void* object = nullptr;  ///< the linker's name for what it is of; null: that stays loaded
};

/// The function of the object whose memory `at` is in. Signal-safe.
LoadedFunction find_function_around(Addr at, std::string_view name) noexcept;
/// The function of the library of that file name, or else of the first object that was loaded after the one around
/// `at`. Signal-safe.
LoadedFunction find_function_behind(Addr at, std::string_view library, std::string_view name) noexcept;
/// Whether a search would find it again where it was. Signal-safe.
bool is_still_loaded(const LoadedFunction& found, std::string_view name) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

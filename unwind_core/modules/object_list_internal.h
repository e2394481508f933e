// The objects of this process as the dynamic linker lists them.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/address.h"

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

}  // namespace jitunwind

// The objects of this process as the dynamic linker lists them.
#pragma once

#include <cstdint>

#include "unwind_core/address.h"

namespace jitunwind {

struct ListedObject {
  Addr bias;     ///< run-time address less the one in the file
  Addr dynamic;  ///< the dynamic section
};

class ObjectVisitor {
 public:
  /// With the list's lock: the object stays there. Must not call what may take another lock of the dynamic linker, as
  /// lazily bound functions do.
  virtual void visit(const ListedObject& object) noexcept = 0;

 protected:
  ~ObjectVisitor() = default;
};

// Thread-safe, not signal-safe. These wait for the list's lock alone, which is never held while constructors run.

/// All objects of this library's own namespace, then those of others, as far as the C library tells of them (glibc
/// 2.35). Those being loaded may be among them, and may not be relocated yet.
void visit_objects(ObjectVisitor& visitor) noexcept;

/// The dynamic section of the object that this library is linked into. 0: a static program has none.
Addr own_dynamic_section() noexcept;

/// How many were ever loaded, in all namespaces: as long as it stays there are no others. 0: not known.
std::uint64_t count_loads() noexcept;

/// Runs `action` with the list's lock: there is one thread at a time in it, of all copies of this library and whoever
/// else does the same. It must not call what visit() must not.
void with_object_list(void (*action)(void*), void* argument) noexcept;

}  // namespace jitunwind

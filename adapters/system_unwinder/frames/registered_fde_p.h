// Call frame information of registered procedures in the form that the unwinder of the C++ run-time reads.
#pragma once

#include <cstdint>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct RegisteredFde {
  enum class Kind : std::uint8_t {
    not_registered,  ///< not registered here: the next definition decides
    none,  ///< registered, but an FDE cannot express it, or there is no memory for one; or the probe's address
    found,
    others_first,  ///< registered, but others may know a personality routine: if they do not, call again
  };
  const void* fde;  ///< valid until the procedure is cancelled
  EhBases bases;
};

/// Sets `out` if the FDE is found. Takes no lock, does not call malloc and does not wait. The first lookup of a
/// procedure, or of a stretch of a large one, encodes its rows; a later one is an index lookup. Signal-safe.
/// Thread-safe. `others_asked`: the other definitions do not know the code.
RegisteredFde::Kind find_registered_fde(const void* pc, RegisteredFde& out, bool others_asked = false) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

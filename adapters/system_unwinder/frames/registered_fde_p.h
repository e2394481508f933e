// Call frame information of registered procedures in the form that the unwinder of the C++ run-time reads.
#pragma once

#include <cstdint>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct RegisteredFde {
  enum class Kind : std::uint8_t {
    not_registered,  ///< none of ours: whoever is next knows
    none,            ///< ours, but what is known cannot be said in an FDE, or there is no memory for it; or the probe's
    found,
    others_first,  ///< ours, but others may know of a personality routine: where these do not know it, ask again
  };
  const void* fde;  ///< valid until the procedure is cancelled
  EhBases bases;
};

/// `out` is set where it is found. No lock, no malloc, no waiting. The first question about a procedure, or a
/// stretch of a large one, encodes its rows; any later one is a look into the index. Signal-safe. Thread-safe.
/// `others_asked`: none of them knows the code.
RegisteredFde::Kind find_registered_fde(const void* pc, RegisteredFde& out, bool others_asked = false) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

// Results of Registration::release() as handles for languages without types. A handle is looked up before use, so that
// any readable memory may be passed: memory that is no registration stays unchanged.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"

namespace jitunwind {

/// Whether the handle comes from release() and is still registered. Signal-safe.
inline bool is_released_registration(const unw_dyn_info_t* released) noexcept {
  return is_registered(released, Behind::user_word);
}

/// Cancels as Registration::cancel(). Error not_registered: the handle is no registration, or no longer one, and its
/// memory is not freed.
Status cancel_released(unw_dyn_info_t* released) noexcept;

}  // namespace jitunwind

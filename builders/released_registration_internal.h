// What Registration::release() gave, as handles of languages without types: any memory that can be read is looked up,
// and what is no such registration stays as it is.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registered_behind_internal.h"

namespace jitunwind {

/// Whether it comes from there, and is registered still. Signal-safe.
inline bool is_released_registration(const unw_dyn_info_t* released) noexcept {
  return is_registered(released, Behind::user_word);
}

/// Registration::cancel(). Error not_registered: it is none, or none any more, and its memory is not given back.
Status cancel_released(unw_dyn_info_t* released) noexcept;

}  // namespace jitunwind

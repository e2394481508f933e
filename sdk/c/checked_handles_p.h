// Whether this library checks handles: it keeps a handle's memory forever, so that use after free is noticed however
// late it comes.
#pragma once

namespace jitunwind::c {

#ifdef JITUNWIND_CHECK_HANDLES
inline constexpr bool k_checks_handles = true;
#else
inline constexpr bool k_checks_handles = false;
#endif

}  // namespace jitunwind::c

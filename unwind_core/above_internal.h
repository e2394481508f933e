// Functions that the core declares and calls, and that libjitunwind defines on top of it. The core alone has none of
// them: the references of libjitunwind-core are weak, so that a program without libjitunwind is linked and started.
// They are bound when the core is loaded: of a libjitunwind that is opened later, only FunctionsAbove are called, which
// it gives to the core. The core opens one if the environment asks for them (dyn_info/registry/environment.cpp).
#pragma once

/// The macro stands in front of a declaration. Callers check is_above() first.
#ifdef JITUNWIND_CORE
#define JITUNWIND_ABOVE [[gnu::weak, gnu::visibility("default")]]
#else
#define JITUNWIND_ABOVE [[gnu::visibility("default")]]
#endif

namespace jitunwind {

/// Whether a function that is declared so is in the process.
template <class Result, class... Arguments>
bool is_above(Result (*function)(Arguments...) noexcept) noexcept {
  return function != nullptr;
}

/// Says why a function is not called, for errors.
inline constexpr const char* k_not_above = "libjitunwind is not loaded, or was loaded after libjitunwind-core";

}  // namespace jitunwind

// Counts and logs changes of the registry.
#pragma once

#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// Logs "register 0x1000-0x2000 name" if JITUNWIND_LOG asks for it. It comes before the registration, while the caller
/// vouches for the descriptors.
void log_to_be_registered(std::span<unw_dyn_info_t* const> batch) noexcept;
/// Logs "cancel 0x1000-0x2000" for those that are registered, from what the registry knows of them.
void log_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept;
/// Counts and logs the error, and returns it.
Error note_refused(const char* what, const Error& error) noexcept;

}  // namespace jitunwind

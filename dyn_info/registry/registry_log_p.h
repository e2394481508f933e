// What is counted and logged of changes of the registry.
#pragma once

#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// Before it is done, while whoever asks for it vouches for the descriptors: "register 0x1000-0x2000 name". Nothing,
/// unless JITUNWIND_LOG asks.
void log_to_be_registered(std::span<unw_dyn_info_t* const> batch) noexcept;
/// "cancel 0x1000-0x2000": of those that are registered, by what the registry knows of them.
void log_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept;
/// Counts and logs it. Returns it.
Error note_refused(const char* what, const Error& error) noexcept;

}  // namespace jitunwind

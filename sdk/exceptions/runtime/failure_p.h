// The runtime's messages on standard error before a program dies of an exception that cannot be handled.
#pragma once

#include "jitunwind/sdk/exceptions/runtime/unwind_frame_p.h"

namespace jitunwind::eh {

/// One line that names the frame: "jitunwind: <what> at frame 3, pc 0x7f.. <name+offset>[: <why>]". Signal-safe.
void report(const char* what, const UnwindFrame& frame, const Error* why = nullptr) noexcept;
/// A line without a frame, then abort().
[[noreturn]] void give_up(const char* what) noexcept;

}  // namespace jitunwind::eh

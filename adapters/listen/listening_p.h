// What is listened to, and what came of it.
#pragma once

#include <cstdint>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

enum class Heard : std::uint8_t { told, taken_back, never_told, procedures, names, files, handed_on, count };

void count_heard(Heard what, std::int64_t by = 1) noexcept;
/// The same of what is counted under one lock only, whose holder the caller is. Takes less time.
void count_under_lock(Heard what, std::int64_t by = 1) noexcept;
std::int64_t heard(Heard what) noexcept;
/// Counts what cannot be read or is not believed, and logs it where JITUNWIND_LOG asks for the registry: of each
/// reason, which is a constant, the first eight times, and then whenever it is twice as often. Signal-safe.
void note_unheard(const Error& why) noexcept;
/// ListenStatus::are_frames_told_here.
bool are_frames_told_here() noexcept;
/// One load. Signal-safe.
bool listens_to(Dialect dialect) noexcept;

}  // namespace jitunwind

// The dialects that are listened to, and the counters of their announcements.
#pragma once

#include <cstdint>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

enum class Heard : std::uint8_t { told, taken_back, never_told, procedures, names, files, handed_on, count };

void count_heard(Heard what, std::int64_t by = 1) noexcept;
/// A faster variant for counters under a lock that the caller holds.
void count_under_lock(Heard what, std::int64_t by = 1) noexcept;
std::int64_t heard(Heard what) noexcept;
/// Counts an entry that cannot be read or is not believed. Logs it if JITUNWIND_LOG has `registry`: each reason, a
/// constant text, the first eight times, and then whenever its number has doubled. Signal-safe.
void note_unheard(const Error& why) noexcept;
/// ListenStatus::are_frames_told_here.
bool are_frames_told_here() noexcept;
/// One load. Signal-safe.
bool listens_to(Dialect dialect) noexcept;

}  // namespace jitunwind

// Dialects that are written somewhere, without a call: a thread looks.
#pragma once

namespace jitunwind {

/// Starts the thread that looks every 10 ms at what is listened to of them, once. It blocks all signals, and is not in
/// forked children. Not signal-safe.
void follow_what_is_written() noexcept;

}  // namespace jitunwind

// Dialects that are written somewhere, without a call: a thread looks.
#pragma once

namespace jitunwind {

/// Starts the thread that looks every 10 ms at what is listened to of them, once. It blocks all signals. A forked child
/// gets one of its own, which begins anew. Not signal-safe.
void follow_what_is_written() noexcept;

}  // namespace jitunwind

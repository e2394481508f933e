// Dialects that engines write to files or lists, without a call: a thread polls them. Programs without code made at run
// time have no such thread.
#pragma once

namespace jitunwind {

/// Starts the thread that polls the enabled ones of these dialects every 10 ms, once. It blocks all signals, and ends
/// when the program's first thread has ended. A forked child gets its own thread, which begins anew. Not signal-safe.
void follow_what_is_written() noexcept;

/// The default without a setting: starts the thread if an object of the process has a list of GDB's, or an engine was
/// heard. Constructors call it once.
void follow_where_an_engine_is() noexcept;
/// An engine was heard: starts the thread under the same condition. Not signal-safe.
void note_engine() noexcept;

}  // namespace jitunwind

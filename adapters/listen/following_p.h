// Dialects that are written somewhere, without a call: a thread looks. Programs without code made at run time have
// none.
#pragma once

namespace jitunwind {

/// Starts the thread that looks every 10 ms at what is listened to of them, once. It blocks all signals, and ends when
/// the program's first thread has ended. A forked child gets one of its own, which begins anew. Not signal-safe.
void follow_what_is_written() noexcept;

/// For who was not asked to follow: starts it if an object of the process has a list of GDB's, or an engine was heard.
/// To be called once, when constructors run.
void follow_where_an_engine_is() noexcept;
/// An engine is heard: likewise. Not signal-safe.
void note_engine() noexcept;

}  // namespace jitunwind

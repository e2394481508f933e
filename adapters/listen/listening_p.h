// The rooms of the library share the dialects that are listened to, the counters of their announcements, the thread
// that follows files and lists, and the locks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

enum class Heard : std::uint8_t { told, taken_back, never_told, procedures, names, files, handed_on, count };

void count_heard(Heard what, std::int64_t by = 1) noexcept;
/// A faster variant for counters under a lock that the caller holds.
void count_under_lock(Heard what, std::int64_t by = 1) noexcept;
std::int64_t heard(Heard what) noexcept;
/// Counts an entry that cannot be read or is not believed. Logs it if JITUNWIND_LOG has `registry`: each reason, a
/// constant text, the first eight times, and then whenever its number has doubled. Signal-safe.
void note_unheard(const Error& why) noexcept;
/// Logs it in the same way; `what`: "not heard", for example.
void note_refusal(const char* what, const Error& why) noexcept;
/// ListenStatus::are_frames_told_here.
bool are_frames_told_here() noexcept;
/// One load. Signal-safe.
bool listens_to(Dialect dialect) noexcept;
bool publishes() noexcept;

// Dialects that engines write to files or lists, without a call: a thread polls them. Programs without code made at run
// time have no such thread.

/// Starts the thread that polls the enabled ones of these dialects every 10 ms, once. It blocks all signals, and ends
/// when the program's first thread has ended. A forked child gets its own thread, which begins anew. Not signal-safe.
void follow_what_is_written() noexcept;

/// The default without a setting: starts the thread if an object of the process has a list of GDB's, or an engine was
/// heard. Constructors call it once.
void follow_where_an_engine_is() noexcept;
/// An engine was heard: starts the thread under the same condition. Not signal-safe.
void note_engine() noexcept;

// Code that engines have unmapped without an announcement is forgotten in the same way for every dialect: each table of
// code checks a few of its pieces periodically.

/// The thread that polls files and lists checks so many pieces each time. If there is no such thread, one in so many
/// calls checks one piece, since the check is a system call.
inline constexpr std::size_t k_looked_at_each_time = 64;
inline constexpr std::uint32_t k_calls_to_a_look = 32;

// Locks of data that threads share, which a forked child finds in a consistent state.

/// Guards the table of announced calls. Held for the few instructions of the table, never while a procedure is
/// registered or cancelled: observers of that may call back here.
extern constinit ForkableLock told_lock;
/// Guards names, and the engines' numbers for them. Held while procedures are registered and cancelled. A fork has to
/// take it before the registry's locks. The registry's own fork handlers are therefore installed first: handlers before
/// a fork are called in the reverse order.
extern constinit ForkableLock names_lock;
/// Callers call it before they change the data of that lock.
void keep_names_whole_in_forks() noexcept;

// Methods of Intel's interface for JITs (names/heard_names.cpp).

/// Called by an agent, with the arguments of NotifyEvent(): loaded code has a name until it is unloaded. The event is
/// lost if memory is exhausted. Thread-safe; not signal-safe.
[[gnu::visibility("default")]] void hear_itt_event(std::int32_t event, const void* data) noexcept;

/// Runs in a forked child, which lacks the thread that was changing names.
void forget_itt_methods_in_child() noexcept;

// The choice of pages to publish, of code that engines have announced: docs/listen.md "Published pages".

/// The thread that follows files and lists calls it every 10 ms. Looks a few times a second for code that is old
/// enough, and publishes it. Throws std::bad_alloc.
void publish_old_code();
/// Publishes at once what is due at a time of CLOCK_MONOTONIC, or code of any age. Both return the number of files that
/// were made. Not signal-safe.
std::size_t publish_code_due(std::int64_t at);
inline std::size_t publish_all_code() { return publish_code_due(INT64_MAX / 2); }

/// The pages are about to be unmapped or replaced: files with any of them are withdrawn as a whole. Files' other pages
/// are published anew. Takes a lock only if there are such files: owners of heaps call it, too.
void withdraw_unmapped(const AddrRange& pages) noexcept;

/// A process that ends removes its published files. Signal-safe.
void remove_published_files() noexcept;
void report_published(ListenStatus& out) noexcept;

}  // namespace jitunwind

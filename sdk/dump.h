// A walk and the registry as text, one line for each frame and each procedure: for tests, for bug reports, and for a
// debugger's prompt, `call jitunwind::dump_registry(2)`.
#pragma once

#include <string>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/trace/log.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// One line for each frame from where `walk` stands, and why it ends:
///   #0 0x401136 sp=0x7ffd10 work(int)+0x6 eh_frame cfa=rsp+16 ra=[cfa-8]
///   ended: outermost
/// The word "guess" follows the origin of a guessed frame, "signal" that of a signal trampoline. Names are those of
/// symbol tables; rows are written as in unwind_core/rows/row_text.h. A line is cut after 500 characters and is one
/// write(2) to `fd`. Signal-safe, thread-safe; takes 8 KiB of the stack.
void dump_walk(Walk walk, int fd = log_fd()) noexcept;
/// Returns the same lines as a string. Allocates.
std::string walk_text(Walk walk);

/// One line for each registered procedure, the oldest first, and how many there are:
///   0x7f00-0x7f40 directives adder
///   1 registered
/// Procedures that other threads register or cancel meanwhile may be missing. Allocates; not signal-safe. False: the
/// registry cannot be listed, because there is no memory, or because a handler asks that interrupted a change of it.
bool dump_registry(int fd = log_fd());
/// Returns the same lines as a string, or "" if the registry cannot be listed.
std::string registry_text();

}  // namespace jitunwind
#pragma GCC visibility pop

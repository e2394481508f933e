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
/// "guess" stands behind the origin of frames that are guessed, "signal" behind trampolines. Names are as in symbol
/// tables, rows as in unwind_core/rows/row_text.h, cut to 500 characters a line. Each line is one write(2) to `fd`.
/// Signal-safe, thread-safe; takes 8 KiB of the stack.
void dump_walk(Walk walk, int fd = log_fd()) noexcept;
/// The same as a string. Allocates.
std::string walk_text(Walk walk);

/// One line for each registered procedure, the oldest first, and how many there are:
///   0x7f00-0x7f40 directives adder
///   1 registered
/// What other threads register or cancel meanwhile may be there or not. Allocates; not signal-safe. False: the registry
/// cannot be listed, because there is no memory, or because this is a handler that interrupted a change of it.
bool dump_registry(int fd = log_fd());
/// The same as a string; "" where it cannot be listed.
std::string registry_text();

}  // namespace jitunwind
#pragma GCC visibility pop

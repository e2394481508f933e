// This process as a target: its memory, its modules, and every source of rows in the order of trust.
#pragma once

#include <cstddef>

#include "jitunwind/unwind_core/address_space.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Registered procedures first ("overrides everything else"), then .eh_frame, .debug_frame, recognised stubs, guesses
/// last. Usable before main, after exit and in signal handlers. Thread-safe. Precondition: host_arch() is not null.
/// JITUNWIND_KEEP=nothing in the environment, when this library is loaded: it keeps no rows, for all who walk. Programs
/// that changed their user when they were executed do not look.
const AddressSpace& local_space() noexcept;
/// The same; each step makes its row.
const AddressSpace& local_space_without_kept_rows() noexcept;
/// The same with listed_modules().
const AddressSpace& local_space_of_listed_modules() noexcept;
/// Makes room for that many rows of local_space(), or more. False: no memory, and nothing has changed. Thread-safe, not
/// signal-safe.
bool keep_at_least(std::size_t rows) noexcept;
/// How many rows of local_space() are kept, or were until others took their places. Signal-safe.
std::size_t kept_rows() noexcept;

/// `sp` is an SP of the calling thread: what can be read of its stack is kept, so that walks of addresses and throws
/// from there need not probe it. Returns what can be read in one piece from `sp` on, and below as far as that is known;
/// empty: this is not the thread's own stack. Signal-safe.
AddrRange expect_walk_from(Addr sp) noexcept;
/// What was found readable of any thread's stack is probed again before anything relies on it: for programs that take
/// pages of a stack away from which there are still frames, and then call backtrace(), unw_backtrace() or throw. A
/// cursor that meets such a page does the same. Signal-safe, thread-safe.
void forget_walked_stacks() noexcept;

/// The name at an address of this process, for messages. False: none, or it cannot be read; `into` is undefined then.
bool find_local_name(CodeAddress at, std::span<char> into, ProcedureName& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

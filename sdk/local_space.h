// This process as a target: its memory, its modules, and every source of rows in the order of trust.
#pragma once

#include <cstddef>

#include "jitunwind/unwind_core/address_space.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Sources of rows are asked in this order: registered procedures ("overrides everything else"), .eh_frame,
/// .debug_frame, recognised stubs, guesses. Usable before main, after exit and in signal handlers. Thread-safe.
/// Precondition: host_arch() is not null. No rows are kept for any walker if JITUNWIND_KEEP=nothing is in the
/// environment when this library is loaded; programs that changed their user when they were executed ignore it.
const AddressSpace& local_space() noexcept;
/// This process without kept rows: each step makes its row.
const AddressSpace& local_space_without_kept_rows() noexcept;
/// This process with the modules of listed_modules().
const AddressSpace& local_space_of_listed_modules() noexcept;
/// Reserves room for at least `rows` rows of local_space(). Returns false, and changes nothing, if there is no memory.
/// Thread-safe, not signal-safe.
bool keep_at_least(std::size_t rows) noexcept;
/// Counts the rows of local_space() that were kept, including those that others have replaced since. Signal-safe.
std::size_t kept_rows() noexcept;

/// Records which part of the calling thread's stack is readable, so that throws and walks of addresses from there need
/// not probe it. `sp` is an SP of that thread. Returns the readable range around `sp`: from `sp` upwards in one piece,
/// and below it as far as that is known. The range is empty if `sp` is not on the thread's own stack. Signal-safe.
AddrRange expect_walk_from(Addr sp) noexcept;
/// Forgets which parts of all threads' stacks were found readable; they are probed again before anything relies on
/// them. Programs need this if they unmap pages of a stack that still has frames, and then call backtrace(),
/// unw_backtrace() or throw. A cursor that meets such a page forgets them by itself. Signal-safe, thread-safe.
void forget_walked_stacks() noexcept;

/// Finds the name at an address of this process. False: there is none, or it is unreadable; `into` is undefined then.
bool find_local_name(CodeAddress at, std::span<char> into, ProcedureName& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

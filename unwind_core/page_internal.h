// Pages of memory, by which it is mapped, protected and proven readable.
#pragma once

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The smallest of any CPU that Linux runs on. Where pages are larger, what is done for each page is done more often
/// than needed, never less.
inline constexpr Addr k_page_size = 4096;

/// The largest of any CPU: what is protected differently is as far apart.
inline constexpr Addr k_largest_page_size = 65536;

/// The page that holds `at`, by its first address.
constexpr Addr page_of(Addr at) noexcept { return at & ~(k_page_size - 1); }

/// Whether this process may write to the page that holds `at`. Signal-safe.
bool is_writable(Addr at) noexcept;

#pragma GCC visibility push(default)
/// Whether all pages from that of `first` to that of `last` are mapped, readable or not. One system call, which looks
/// at what is mapped and not at pages. Signal-safe, no cancellation point.
bool are_mapped(Addr first, Addr last) noexcept;
inline bool is_mapped(Addr at) noexcept { return are_mapped(at, at); }
#pragma GCC visibility pop

}  // namespace jitunwind

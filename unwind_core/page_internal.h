// Pointers of this process as addresses; and pages of memory, by which it is mapped, protected and proven readable.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

inline std::uintptr_t address_of(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }
template <class T = void>
T* pointer_to(Addr at) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(at));
}

/// The smallest page size of any CPU that Linux runs on. If pages are larger, work for each page is repeated more often
/// than necessary, but never omitted.
inline constexpr Addr k_page_size = 4096;

/// The largest page size of any CPU. Areas with different protection are at least this far apart.
inline constexpr Addr k_largest_page_size = 65536;

/// The page that holds `at`, by its first address.
constexpr Addr page_of(Addr at) noexcept { return at & ~(k_page_size - 1); }

/// Whether this process may write to the page that holds `at`. Signal-safe.
[[gnu::visibility("default")]] bool is_writable(Addr at) noexcept;

#pragma GCC visibility push(default)
/// Whether all pages from that of `first` to that of `last` are mapped, readable or not. One system call checks the
/// mappings and does not touch the pages. Signal-safe, no cancellation point.
bool are_mapped(Addr first, Addr last) noexcept;
inline bool is_mapped(Addr at) noexcept { return are_mapped(at, at); }
#pragma GCC visibility pop

/// Whether Valgrind runs this process, which in some respects differs from the kernel that it stands for. Signal-safe.
bool under_valgrind() noexcept;

}  // namespace jitunwind

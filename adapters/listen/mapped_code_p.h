// Code that engines have unmapped without a word. Whatever dialect told of it, it is forgotten in the same way: each
// keeper looks at a few of its pieces now and then.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// All pages from that of `first` to that of `last`, which is less than k_near further; by one system call. ENOMEM: one
/// is not mapped (mincore(2)). Any other error is the kernel's, which says nothing of them.
inline constexpr Addr k_near = Addr{1} << 20;
inline bool are_mapped(Addr first, Addr last) noexcept {
  const ErrnoKeeper keep_errno;
  std::array<unsigned char, k_near / k_page_size + 1> ignored;
  const Addr begin = first & -static_cast<Addr>(::getpagesize());
  const auto size = static_cast<std::size_t>(last - begin) + 1;
  return ::mincore(reinterpret_cast<void*>(static_cast<std::uintptr_t>(begin)), size, ignored.data()) == 0 ||
         errno != ENOMEM;
}
inline bool is_mapped(Addr at) noexcept { return are_mapped(at, at); }

/// How many pieces the thread that follows what is written looks at each time; calls look where there is none, at one
/// in so many calls, since it is a system call.
inline constexpr std::size_t k_looked_at_each_time = 64;
inline constexpr std::uint32_t k_calls_to_a_look = 32;

}  // namespace jitunwind

// Code that engines have unmapped without a word. Whatever dialect told of it, it is forgotten in the same way: each
// keeper looks at a few of its pieces now and then.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {

/// ENOMEM: it is not (mincore(2)). Any other error is the kernel's, which says nothing of it.
inline bool is_mapped(Addr at) noexcept {
  const ErrnoKeeper keep_errno;
  unsigned char ignored = 0;
  const Addr page = at & -static_cast<Addr>(::getpagesize());
  return ::mincore(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), 1, &ignored) == 0 || errno != ENOMEM;
}

/// How many pieces the thread that follows what is written looks at each time; calls look where there is none, at one
/// in so many calls, since it is a system call.
inline constexpr std::size_t k_looked_at_each_time = 64;
inline constexpr std::uint32_t k_calls_to_a_look = 32;

}  // namespace jitunwind

// Code whose call frame information its engine has taken back, and that may run all the same: Mesa's llvmpipe frees
// what describes its code as soon as that is made. Where it begins is all that stays known, for guesses that follow
// code.
#pragma once

#include <cstddef>
#include <optional>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class RowSource;

/// The latest so many are known.
inline constexpr std::size_t k_taken_back_known = 1024;

/// Takes some nanoseconds, and reads nothing. Nobody has to say that the code is gone: what is followed then has to
/// lead to the same caller twice, as in any code. Thread-safe.
void keep_taken_back(const AddrRange& code) noexcept;

/// Where the latest one around the address begins. Signal-safe, thread-safe.
std::optional<Addr> begin_of_taken_back(Addr at) noexcept;

/// followed_code_source() of this process, where such a begin counts as one that somebody told the name of.
const RowSource& followed_own_code_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

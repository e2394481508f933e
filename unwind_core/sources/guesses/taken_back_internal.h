// Code whose engine has taken its call frame information back, and that may run all the same: Mesa's llvmpipe frees the
// description of its code as soon as that is made. Only the start of the code stays known, for guesses that follow
// code.
#pragma once

#include <cstddef>
#include <optional>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class RowSource;

/// The number of the latest starts that are known.
inline constexpr std::size_t k_taken_back_known = 1024;

/// Takes some nanoseconds, and reads nothing. The end of the code need not be announced: a guess then has to find the
/// same caller twice, as in any code. Thread-safe.
void keep_taken_back(const AddrRange& code) noexcept;

/// The start of the latest such code around the address. Signal-safe, thread-safe.
std::optional<Addr> begin_of_taken_back(Addr at) noexcept;

/// followed_code_source() of this process. Such a start counts as that of an announced name.
const RowSource& followed_own_code_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

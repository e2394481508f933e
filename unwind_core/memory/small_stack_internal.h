// Work that needs more of the stack than a small signal stack (sigaltstack(2)) may have left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes that whoever works with room has at least; at least half of that, where such work asks for room again.
inline constexpr std::size_t k_room = std::size_t{32} << 10;

/// Calls work(argument): here, unless the thread is on its alternate signal stack with less than k_room left. Then it
/// is called on a stack of the library's, of which there is one for each thread that is on one; signals that come from
/// elsewhere wait meanwhile, and those that the work itself could cause have a signal stack of their own there, for the
/// kernel would begin anew at the top of the thread's. Where there is no memory for a stack, or system calls for it are
/// refused, the work has what is left. Of a signal stack with SS_AUTODISARM the kernel says nothing to a handler that
/// runs on it: it is found by the kernel's frame, two pages above SP at most, unless it lies on the thread's own stack.
///
/// Whether there is room is asked by a system call, unless `walk`, not null, is what the thread has asked for the last
/// time, near there: it tells walks apart, by an address among its own or anything else. Where a walk had room on the
/// thread's own stack it has room. Signal-safe, thread-safe; a jump out of a handler that has interrupted the work
/// costs a stack.
void call_with_room(void (*work)(void*), void* argument, const void* walk) noexcept;

/// Where the stack of a thread goes on whose SP is on a stack of the library's: its SP when it came there. 0: `sp` is
/// elsewhere. Of any thread. Signal-safe.
Addr sp_before_room(Addr sp) noexcept;

/// The same with what `work` returns. Out of line in any case: the caller's frame has none of its variables.
template <class Work>
[[gnu::always_inline]] inline auto with_room(const void* walk, Work&& work) noexcept {
  using Result = std::invoke_result_t<Work&>;
  using Function = std::remove_reference_t<Work>;
  if constexpr (std::is_void_v<Result>) {
    call_with_room([](void* function) { (*static_cast<Function*>(function))(); }, std::addressof(work), walk);
  } else {
    struct Call {
      Function* work;
      std::optional<Result> result;
    } call{std::addressof(work), std::nullopt};
    const auto run = [](void* argument) {
      Call& made = *static_cast<Call*>(argument);
      made.result.emplace((*made.work)());
    };
    call_with_room(run, &call, walk);
    return std::move(*call.result);
  }
}
template <class Work>
[[gnu::always_inline]] inline auto with_room(Work&& work) noexcept {
  return with_room(nullptr, std::forward<Work>(work));
}

}  // namespace jitunwind
#pragma GCC visibility pop

// Calls of work that needs more stack than a small signal stack (sigaltstack(2)) may have left.
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

/// The bytes of stack that the work has at least. Nested work that asks for room has at least half of that.
inline constexpr std::size_t k_room = std::size_t{32} << 10;

/// Calls work(argument) directly, unless the thread is on its alternate signal stack with less than k_room left. Then
/// the work is called on a stack of the library, which has one for each thread that needs one. Signals that come from
/// elsewhere are blocked meanwhile. Signals that the work itself could cause get a signal stack of their own there,
/// since the kernel would otherwise start at the top of the thread's. When there is no memory for a stack, or system
/// calls for it are refused, the work has what is left of the current stack. The kernel reports no signal stack with
/// SS_AUTODISARM to a handler that runs on it. Such a stack is found by the kernel's signal frame, two pages above SP
/// at most, unless it lies on the thread's own stack.
///
/// A system call tells whether there is room. It is saved when `walk`, if not null, is the walk for which the thread
/// asked the last time, near the same SP. The pointer tells walks apart; any address will do. A walk that had room on
/// the thread's own stack still has it. Signal-safe, thread-safe. A jump out of a handler that interrupted the work
/// loses a stack.
void call_with_room(void (*work)(void*), void* argument, const void* walk) noexcept;

/// A walk begins at `sp` whose address another one may have had, on another stack of the thread. The thread need not
/// ask again if it asked the last time for a walk with this address and SP, on its own stack. Signal-safe.
void begin_walk_with_room(const void* walk, Addr sp) noexcept;

/// Returns the SP from which a thread came to the library's stack that `sp` is on, or 0 when `sp` is elsewhere. `sp`
/// may belong to any thread. Signal-safe.
Addr sp_before_room(Addr sp) noexcept;

/// Calls `work` in the same way and returns its result. `work` always runs out of line: the caller's frame has none of
/// its variables.
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

// Methods of Intel's interface for JITs, by the numbers that engines give them.
#pragma once

#include <cstdint>

namespace jitunwind {

/// Called by an agent, with the arguments of NotifyEvent(): loaded code has a name until it is unloaded. The event is
/// lost if memory is exhausted. Thread-safe; not signal-safe.
[[gnu::visibility("default")]] void hear_itt_event(std::int32_t event, const void* data) noexcept;

/// Runs in a forked child, which lacks the thread that was changing names.
void forget_itt_methods_in_child() noexcept;

}  // namespace jitunwind

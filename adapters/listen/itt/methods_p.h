// Methods of Intel's interface for JITs, by the numbers that engines give them.
#pragma once

#include <cstdint>

namespace jitunwind {

/// For an agent, with the arguments of NotifyEvent(): code that is loaded has a name until it is unloaded. Without
/// memory the event is not heard. Thread-safe; not signal-safe.
[[gnu::visibility("default")]] void hear_itt_event(std::int32_t event, const void* data) noexcept;

/// In a forked child that does not have who was changing names.
void forget_itt_methods_in_child() noexcept;

}  // namespace jitunwind

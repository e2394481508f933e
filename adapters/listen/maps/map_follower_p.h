// The perf map of this process, followed while the process appends to it.
#pragma once

namespace jitunwind {

/// Starts the thread that looks at /tmp/perf-PID.map every 10 ms, once. It blocks all signals, and is not in forked
/// children. Not signal-safe.
void follow_perf_map() noexcept;

}  // namespace jitunwind

// Valgrind, which in some respects differs from the kernel that it stands for.
#pragma once

namespace jitunwind {

/// Whether Valgrind runs this process. Signal-safe.
bool under_valgrind() noexcept;

}  // namespace jitunwind

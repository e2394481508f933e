// Valgrind, where what it does in the kernel's place makes a difference.
#pragma once

namespace jitunwind {

/// Whether it runs this process. Signal-safe.
bool under_valgrind() noexcept;

}  // namespace jitunwind

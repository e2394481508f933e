// Names that are valid until the process ends, whatever becomes of the code that they name.
#pragma once

#include <cstddef>
#include <string_view>

namespace jitunwind {

inline constexpr std::size_t k_most_lasting_bytes = std::size_t{64} << 20;

/// Returns the name, NUL-terminated; the same name has the same address, unless threads ask for it at once for the
/// first time. Null: there is no memory, or names of k_most_lasting_bytes are kept. Signal-safe, thread-safe, and never
/// waits. It allocates by mmap alone.
const char* lasting_name(std::string_view name) noexcept;

}  // namespace jitunwind

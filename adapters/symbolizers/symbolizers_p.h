// The parts of functions that turn addresses into names: the next definitions, and names that are valid until the
// process ends, whatever becomes of the code that they name.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string_view>

namespace jitunwind {

/// The C library's functions, which are called without this library.
struct NextSymbolizers {
  int (*dladdr)(const void* address, Dl_info* info) = nullptr;
  int (*dladdr1)(const void* address, Dl_info* info, void** extra, int flags) = nullptr;
  char** (*backtrace_symbols)(void* const* addresses, int size) = nullptr;
  void (*backtrace_symbols_fd)(void* const* addresses, int size, int fd) = nullptr;
};

/// The definitions that follow in search order. They are null in a static program, of whose addresses glibc's own
/// functions know nothing. They are looked up when the library is loaded, so that this is signal-safe afterwards.
const NextSymbolizers& next_symbolizers() noexcept;

inline constexpr std::size_t k_most_lasting_bytes = std::size_t{64} << 20;

/// Returns the name, NUL-terminated; the same name has the same address, unless threads ask for it at once for the
/// first time. Null: there is no memory, or names of k_most_lasting_bytes are kept. Signal-safe, thread-safe, and never
/// waits. It allocates by mmap alone.
const char* lasting_name(std::string_view name) noexcept;

}  // namespace jitunwind

// The C library's functions that turn addresses into names, which are called without this library.
#pragma once

#include <dlfcn.h>

namespace jitunwind {

struct NextSymbolizers {
  int (*dladdr)(const void* address, Dl_info* info) = nullptr;
  int (*dladdr1)(const void* address, Dl_info* info, void** extra, int flags) = nullptr;
  char** (*backtrace_symbols)(void* const* addresses, int size) = nullptr;
  void (*backtrace_symbols_fd)(void* const* addresses, int size, int fd) = nullptr;
};

/// The definitions that follow in search order. They are null in a static program, of whose addresses glibc's own
/// functions know nothing. They are looked up when the library is loaded, so that this is signal-safe afterwards.
const NextSymbolizers& next_symbolizers() noexcept;

}  // namespace jitunwind

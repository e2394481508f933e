// Functions of loaded objects, found without the dynamic linker's functions. Those wait for its lock: for a thread
// inside of dlopen(), which may be in a constructor and wait for this one. Instead the lists that the linker keeps for
// debuggers are read. Nothing in them is believed: another thread may be changing them.
#pragma once

#include <string_view>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A function by its address, null for none.
struct LoadedFunction {
  void* function = nullptr;
  const void* object = nullptr;  ///< the linker's name for what it is of; null: that stays loaded
};

/// The function of the object whose memory `at` is in. Signal-safe.
LoadedFunction find_function_around(Addr at, std::string_view name) noexcept;
/// The function of the library of that file name, or else of the first object that was loaded after the one around
/// `at`. Signal-safe.
LoadedFunction find_function_behind(Addr at, std::string_view library, std::string_view name) noexcept;
/// Whether a search would find it again where it was. Signal-safe.
bool is_still_loaded(const LoadedFunction& found, std::string_view name) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

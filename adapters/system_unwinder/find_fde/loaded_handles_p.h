// Handles to objects that are loaded, which thereby stay so. A static program has none.
#pragma once

namespace jitunwind {

// Not signal-safe: all of these take locks of the dynamic linker, and wait for whoever is in dlopen() or dlclose(),
// constructors included.

/// Null: it is not loaded.
void* open_loaded(const char* name) noexcept;
/// The same by an address in it.
void* open_loaded_at(const void* at) noexcept;
void close_handle(void* handle) noexcept;

}  // namespace jitunwind

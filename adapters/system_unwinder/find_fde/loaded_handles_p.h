// Handles to loaded objects; an object stays loaded while it has a handle. A static program has none.
#pragma once

namespace jitunwind {

// Not signal-safe: all of these take locks of the dynamic linker, and wait for threads in dlopen() or dlclose(),
// constructors included.

/// Null: the object is not loaded.
void* open_loaded(const char* name) noexcept;
/// The handle of the object that contains an address.
void* open_loaded_at(const void* at) noexcept;
void close_handle(void* handle) noexcept;

}  // namespace jitunwind

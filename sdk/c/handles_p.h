// Handles of the C interface. Each begins with a word that names its kind, except for registrations, which the registry
// knows.
#pragma once

#include <cstdint>
#include <memory>

#include "jitunwind/sdk/c/answer_internal.h"

namespace jitunwind::c {

/// Whether this library checks handles: it keeps a handle's memory forever, so that use after free is noticed however
/// late it comes.
#ifdef JITUNWIND_CHECK_HANDLES
inline constexpr bool k_checks_handles = true;
#else
inline constexpr bool k_checks_handles = false;
#endif

/// Numbers that no pointer, size or text has.
enum class Kind : std::uint64_t {
  builder = 0x9a75'b01d'e500'0001,
  description,
  batch,
  object,
  target,
  cursor,
  decision,
  passed_frame,
  code_segments,
  freed,
};

inline bool is_kind(Kind kind) noexcept { return kind >= Kind::builder && kind <= Kind::freed; }

/// The first word of any handle. Precondition: readable, aligned. A registration's is a link of the registry's list,
/// which other threads change.
inline Kind kind_of(const void* handle) noexcept {
  return Kind{__atomic_load_n(static_cast<const std::uint64_t*>(handle), __ATOMIC_RELAXED)};
}

/// Chooses the error. Precondition: the handle is bad.
[[gnu::visibility("default")]] ju_status refuse_handle(const void* handle, const char* place, ju_error* error) noexcept;

inline bool is_handle(const void* handle, Kind kind) noexcept {
  return handle && reinterpret_cast<std::uintptr_t>(handle) % alignof(std::uint64_t) == 0 && kind_of(handle) == kind;
}

inline ju_status check_kind(const void* handle, Kind kind, const char* place, ju_error* error) noexcept {
  if (is_handle(handle, kind)) [[likely]]
    return JU_OK;
  return refuse_handle(handle, place, error);
}

/// `T` has its kind as T::k_kind, and as its first member.
template <class T>
ju_status check(const T* handle, const char* place, ju_error* error = nullptr) noexcept {
  return check_kind(handle, T::k_kind, place, error);
}

/// Frees the memory of a handle whose object was destroyed, or keeps it as that of a freed handle.
[[gnu::visibility("default")]] void free_memory(void* handle, void (*release)(void*) noexcept) noexcept;

/// Precondition: the handle was made by new.
template <class T>
void free_handle(T* handle) noexcept {
  std::destroy_at(handle);
  free_memory(handle, [](void* memory) noexcept { ::operator delete(memory); });
}

/// Whether a handle is still the caller's. Cancellation takes out every registration it can; the library owns the
/// handle unless it is still registered.
inline bool is_registered_still(const Status& cancelled) noexcept {
  return !cancelled && cancelled.error().code == ErrorCode::in_signal_handler;
}

/// Null does nothing, as in all functions that free.
template <class T>
ju_status check_and_free(T* handle, const char* place) noexcept {
  if (!handle) return JU_OK;
  if (const ju_status bad = check(handle, place)) return bad;
  free_handle(handle);
  return JU_OK;
}

/// Passes the object to the caller.
template <class T>
ju_status hand_out(std::unique_ptr<T> made, T** out) noexcept {
  *out = made.release();
  return JU_OK;
}

}  // namespace jitunwind::c

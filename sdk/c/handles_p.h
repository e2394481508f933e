// Handles of the C interface. Each begins with a word that names its kind, except for registrations, which the registry
// knows.
#pragma once

#include <cstdint>
#include <memory>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/register.h"
#include "jitunwind/sdk/c/walk.h"
#include "jitunwind/sdk/walk.h"

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

/// The handle of a registration is its descriptor.
inline unw_dyn_info_t* info_of(const ju_registration* registration) noexcept {
  return reinterpret_cast<unw_dyn_info_t*>(const_cast<ju_registration*>(registration));
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

/// The first members of a ju_target.
struct TargetHead {
  Kind kind = Kind::target;
  std::uint64_t renewals = 0;  ///< number of renewals; results from before the last one are void
};

struct CursorInPlace {
  Kind kind;
  Frame frame;
  const TargetHead* target = nullptr;  ///< null: this process
  std::uint64_t renewals = 0;
};
// The limit: compiled programs have fixed the size.
static_assert(sizeof(CursorInPlace) <= sizeof(ju_cursor) && alignof(CursorInPlace) <= alignof(ju_cursor));
static_assert(std::is_trivially_copyable_v<CursorInPlace>);

/// `of`: the constructor argument of a Frame, which is copied once, to its final place.
template <class Of>
void begin(ju_cursor& cursor, const Of& of, const TargetHead* target = nullptr) noexcept {
  new (&cursor) CursorInPlace{Kind::cursor, Frame(of), target, target ? target->renewals : 0};
}
inline Frame& frame_of(ju_cursor& cursor) noexcept { return reinterpret_cast<CursorInPlace*>(&cursor)->frame; }
inline const Frame& frame_of(const ju_cursor& cursor) noexcept {
  return reinterpret_cast<const CursorInPlace*>(&cursor)->frame;
}

/// Libraries that check handles never free a target's memory, so that it outlives the target. Precondition: a cursor.
inline bool is_of_void_target(const ju_cursor& cursor) noexcept {
  const auto& at = reinterpret_cast<const CursorInPlace&>(cursor);
  return at.target && (at.target->kind != Kind::target || at.target->renewals != at.renewals);
}
inline bool is_cursor(const ju_cursor* cursor) noexcept {
  return is_handle(cursor, Kind::cursor) && !(k_checks_handles && is_of_void_target(*cursor));
}
/// Chooses the error. Precondition: the cursor is bad.
[[gnu::cold]] inline ju_status refuse_cursor(const ju_cursor* cursor, ju_error* error) noexcept {
  if (is_handle(cursor, Kind::cursor)) return tell(error, JU_FREED_HANDLE, "cursor");
  return refuse_handle(cursor, "cursor", error);
}
inline ju_status check_cursor(const ju_cursor* cursor, ju_error* error) noexcept {
  return is_cursor(cursor) ? JU_OK : refuse_cursor(cursor, error);
}

/// Checks memory in which a cursor is to begin.
inline ju_status check_room(const ju_cursor* cursor, ju_error* error) noexcept {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(cursor) % alignof(ju_cursor) == 0;
  return cursor && is_aligned ? JU_OK : refuse_handle(cursor, "cursor", error);
}

}  // namespace jitunwind::c

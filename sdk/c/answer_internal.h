// Common parts of the C interface's functions: nothing throws, errors go to the caller's structure, and structures of
// other releases are read and written as far as both releases know them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind::c {

ju_status status_of(ErrorCode code) noexcept;
/// The status of the latest refusal that a structure of counters has.
template <class T>
ju_status latest_refusal(const T& counters) noexcept {
  return counters.refused == 0 ? JU_OK : status_of(counters.latest_refusal.code);
}

/// Size in bytes of the first release's structure, which every caller has at least. A structure that grows gets a
/// specialisation here.
template <class T>
inline constexpr std::size_t k_first_size = sizeof(T);
/// The upper limit of a structure's size; a larger number was never set.
inline constexpr std::size_t k_most_size = std::size_t{1} << 16;

/// A structure's size is a multiple of its alignment, so that elements of arrays are aligned.
template <class T>
bool has_size(const T& of_caller) noexcept {
  const std::size_t size = of_caller.struct_size;
  return size >= k_first_size<T> && size < k_most_size && size % alignof(T) == 0;
}

/// Fills in the caller's structure, unless it is null, and returns the status. Signal-safe.
ju_status tell(ju_error* into, ju_status status, std::uint64_t at, std::string_view place,
               std::string_view text) noexcept;
/// Uses the general text of the status.
ju_status tell(ju_error* into, ju_status status, const char* place, std::uint64_t at = 0) noexcept;
ju_status tell(ju_error* into, const Error& error, const char* place = "") noexcept;
template <class T>
ju_status tell(ju_error* into, const Result<T>& result, const char* place = "") noexcept {
  return result ? JU_OK : tell(into, result.error(), place);
}

/// Converts the exception of a catch clause to a status. Foreign exceptions, such as the end of a thread, are rethrown.
ju_status tell_thrown(ju_error* into);

/// The result of `work`, or the status for its exception. Nothing of the core throws.
template <class Work>
ju_status answer(ju_error* error, Work work) {
  if (error && !has_size(*error)) [[unlikely]]
    return JU_BAD_STRUCT_SIZE;
#ifdef __cpp_exceptions
  try {
    return work();
  } catch (...) {
    return tell_thrown(error);
  }
#else
  return work();
#endif
}

/// Reads a structure of the caller's, of this release or of another one. Members that an older release lacks are 0;
/// members that a newer release adds must be 0.
template <class T>
ju_status read_struct(const T* of_caller, T& out, const char* place, ju_error* error) noexcept {
  if (!of_caller) return tell(error, JU_NULL_POINTER, place);
  if (!has_size(*of_caller)) return tell(error, JU_BAD_STRUCT_SIZE, place, of_caller->struct_size);
  const std::size_t size = of_caller->struct_size;
  if (size == sizeof(T)) [[likely]]
    return out = *of_caller, JU_OK;
  out = T{};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(of_caller);
  std::memcpy(static_cast<void*>(&out), bytes, std::min(size, sizeof(T)));
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char b) { return b != 0; }))
    return tell(error, JU_BAD_VERSION, place);
  return JU_OK;
}

/// Reads it without a copy if it is of this release. `read` is the caller's structure, or `copy`.
template <class T>
ju_status read_struct(const T* of_caller, const T*& read, T& copy, const char* place, ju_error* error) noexcept {
  read = of_caller;
  if (of_caller && of_caller->struct_size == sizeof copy) [[likely]]
    return JU_OK;
  read = &copy;
  return read_struct(of_caller, copy, place, error);
}

/// Writes as many bytes as the caller's structure has; its struct_size stays.
template <class T>
ju_status write_struct(T values, T* of_caller, const char* place, ju_error* error) noexcept {
  if (!of_caller) return tell(error, JU_NULL_POINTER, place);
  if (!has_size(*of_caller)) return tell(error, JU_BAD_STRUCT_SIZE, place, of_caller->struct_size);
  values.struct_size = of_caller->struct_size;
  std::memcpy(static_cast<void*>(of_caller), &values, std::min(values.struct_size, sizeof(T)));
  return JU_OK;
}

/// Writes a text to the caller's memory, cut to `room` - 1 bytes.
ju_status write_text(std::string_view text, char* into, std::size_t room, std::size_t* length) noexcept;

inline constexpr std::size_t k_longest_string = 65536;
/// Finds the end of a string of the caller's; null is "". False: the string has no end, or is not readable.
/// Signal-safe.
bool read_string(const char* of_caller, std::string_view& out, std::size_t longest = k_longest_string) noexcept;

}  // namespace jitunwind::c
#pragma GCC visibility pop

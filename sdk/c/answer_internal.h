// What the functions of the C interface have in common: nothing throws, errors go where the caller wants them,
// structures of other releases are read and written as far as both know them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind::c {

ju_status status_of(ErrorCode code) noexcept;

/// Bytes of the first release's structure: callers have at least these. A structure that grows has its number here.
template <class T>
inline constexpr std::size_t k_first_size = sizeof(T);
/// No structure will ever be as large: what says so was never set.
inline constexpr std::size_t k_most_size = std::size_t{1} << 16;

/// No structure's size is less aligned than the structure, and so arrays of it are aligned.
template <class T>
bool has_size(const T& of_caller) noexcept {
  const std::size_t size = of_caller.struct_size;
  return size >= k_first_size<T> && size < k_most_size && size % alignof(T) == 0;
}

/// Tells the caller, if they want to know, and returns the status. Signal-safe.
ju_status tell(ju_error* into, ju_status status, std::uint64_t at, std::string_view place,
               std::string_view text) noexcept;
/// With the general text of the status.
ju_status tell(ju_error* into, ju_status status, const char* place, std::uint64_t at = 0) noexcept;
ju_status tell(ju_error* into, const Error& error, const char* place = "") noexcept;
template <class T>
ju_status tell(ju_error* into, const Result<T>& result, const char* place = "") noexcept {
  return result ? JU_OK : tell(into, result.error(), place);
}

/// In a catch clause: what was thrown, as a status. What is no exception of C++, such as the end of a thread, goes on.
ju_status tell_thrown(ju_error* into);

/// What `work` returns; or what it threw, as a status.
template <class Work>
ju_status answer(ju_error* error, Work work) {
  if (error && !has_size(*error)) [[unlikely]]
    return JU_BAD_STRUCT_SIZE;
  try {
    return work();
  } catch (...) {
    return tell_thrown(error);
  }
}

/// A structure of the caller's, of this release or of another one. What an older one does not have is 0; what a newer
/// one has besides must be 0.
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

/// Writes as much as the caller has room for; its size stays.
template <class T>
ju_status write_struct(T values, T* of_caller, const char* place, ju_error* error) noexcept {
  if (!of_caller) return tell(error, JU_NULL_POINTER, place);
  if (!has_size(*of_caller)) return tell(error, JU_BAD_STRUCT_SIZE, place, of_caller->struct_size);
  values.struct_size = of_caller->struct_size;
  std::memcpy(static_cast<void*>(of_caller), &values, std::min(values.struct_size, sizeof(T)));
  return JU_OK;
}

/// As all texts that are written to memory of the caller's.
ju_status write_text(std::string_view text, char* into, std::size_t room, std::size_t* length) noexcept;

inline constexpr std::size_t k_longest_string = 65536;
/// Finds the end of a string of the caller's; null is "". False: it has none, or none that can be read. Signal-safe.
bool read_string(const char* of_caller, std::string_view& out, std::size_t longest = k_longest_string) noexcept;

}  // namespace jitunwind::c

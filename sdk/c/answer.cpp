#include "jitunwind/sdk/c/answer_internal.h"

#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/page_internal.h"

extern "C" [[gnu::weak]] void __lsan_ignore_object(const void* block);

namespace jitunwind::c {
namespace {

template <std::size_t N>
void copy_cut(std::string_view text, char (&into)[N]) noexcept {
  (void)write_text(text, into, N, nullptr);
}

bool is_readable(const char* at, MemoryWindow window) noexcept {
  std::array<std::byte, 1> byte;
  return local_space().memory.read(reinterpret_cast<std::uintptr_t>(at), byte, window) == byte.size();
}

/// A system call takes longer than registering. So only memory that cannot be read is probed by two, of which the first
/// checks that the second one is reliable.
bool is_readable(const char* at) noexcept {
  MemoryWindow trusting;
  trusting.has_tried_mask = true;
  return is_readable(at, trusting) || is_readable(at, {});
}

}  // namespace

ju_status tell(ju_error* into, ju_status status, std::uint64_t at, std::string_view place,
               std::string_view text) noexcept {
  if (into == nullptr || !has_size(*into)) return status;
  into->code = status;
  into->at = at;
  into->remedy = ju_status_remedy(status);
  copy_cut(place, into->place);
  copy_cut(text, into->text);
  return status;
}

ju_status tell(ju_error* into, ju_status status, const char* place, std::uint64_t at) noexcept {
  return tell(into, status, at, place, ju_status_text(status));
}

ju_status tell(ju_error* into, const Error& error, const char* place) noexcept {
  const char* const text = error.what[0] != '\0' ? error.what : error_text(error.code);
  return tell(into, status_of(error.code), error.at, place, text);
}

ju_status write_text(std::string_view text, char* into, std::size_t room, std::size_t* length) noexcept {
  if (length) *length = text.size();
  if (room == 0) return JU_OK;
  if (!into) return JU_NULL_POINTER;
  const std::size_t size = std::min(text.size(), room - 1);
  if (size != 0) std::memcpy(into, text.data(), size);
  into[size] = '\0';
  return JU_OK;
}

ju_status refuse_handle(const void* handle, const char* place, ju_error* error) noexcept {
  if (!handle) return tell(error, JU_NULL_POINTER, place);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(handle) % alignof(std::uint64_t) == 0;
  return tell(error, is_aligned && kind_of(handle) == Kind::freed ? JU_FREED_HANDLE : JU_BAD_HANDLE, place);
}

void free_memory(void* handle, void (*release)(void*) noexcept) noexcept {
  const Kind freed = Kind::freed;
  std::memcpy(handle, &freed, sizeof freed);
  asm volatile("" : : "r"(handle) : "memory");  // the store is not optimised away, although the memory is freed
  if constexpr (!k_checks_handles)
    release(handle);
  else if (__lsan_ignore_object)
    __lsan_ignore_object(handle);
}

bool read_string(const char* of_caller, std::string_view& out, std::size_t longest) noexcept {
  out = {};
  if (!of_caller) return true;
  std::size_t size = 0;
  while (size < longest) {
    const char* const at = of_caller + size;
    if (!is_readable(at)) return false;
    const std::size_t left_of_page = k_page_size - reinterpret_cast<std::uintptr_t>(at) % k_page_size;
    const std::size_t most = std::min(left_of_page, longest - size);
    if (const void* const end = std::memchr(at, '\0', most)) {
      out = {of_caller, static_cast<std::size_t>(static_cast<const char*>(end) - of_caller)};
      return true;
    }
    size += most;
  }
  return false;
}

}  // namespace jitunwind::c

unsigned ju_version(void) { return jitunwind_version(); }

ju_status ju_check_version(unsigned compiled_with, ju_error* error) {
  constexpr unsigned k_major = 10000;
  if (compiled_with / k_major == jitunwind_version() / k_major && compiled_with <= jitunwind_version()) return JU_OK;
  return jitunwind::c::tell(error, JU_BAD_VERSION, "compiled_with", compiled_with);
}

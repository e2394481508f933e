// The C library's allocator, for memory that must be provided or refused in a forked child. operator new(std::nothrow)
// does not serve here: in libstdc++ and libc++ it calls the throwing operator. If there is no memory, the exception
// comes from an emergency pool behind a lock that fork() does not protect. If another thread held that lock, the child
// waits forever.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace jitunwind {

/// Returns memory that is aligned to alignof(std::max_align_t), or null when there is none. Not signal-safe.
[[nodiscard]] inline void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
inline void give_back(void* memory) noexcept { std::free(memory); }

struct GiveBack {
  void operator()(void* memory) const noexcept { give_back(memory); }
};
/// An array of plain values, which need no destructor.
template <class T>
using HeapArray = std::unique_ptr<T[], GiveBack>;

/// Returns null when there is no memory.
template <class T, class... Arguments>
[[nodiscard]] T* make_on_heap(Arguments&&... arguments) noexcept {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  void* const memory = allocate(sizeof(T));
  return memory ? new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
}
template <class T>
void destroy_on_heap(T* object) noexcept {
  if (object) std::destroy_at(object);
  give_back(object);
}

}  // namespace jitunwind

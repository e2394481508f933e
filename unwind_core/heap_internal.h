// The C library's allocator, for what has to be had, or refused, in a forked child. operator new(std::nothrow) is no
// way to it: that of libstdc++ and of libc++ calls the one that throws, and without memory exceptions are taken from an
// emergency pool, behind a lock that nobody holds across fork(). Where another thread had it, a child waits without
// end.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace jitunwind {

/// Aligned to alignof(std::max_align_t). Null: there is no memory. Not signal-safe.
[[nodiscard]] inline void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
inline void give_back(void* memory) noexcept { std::free(memory); }

struct GiveBack {
  void operator()(void* memory) const noexcept { give_back(memory); }
};
/// Of plain values, which need no destructor.
template <class T>
using HeapArray = std::unique_ptr<T[], GiveBack>;

/// Null: there is no memory for it.
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

// The C library's allocator, for memory that must be provided or refused in a forked child. operator new(std::nothrow)
// does not serve here: in libstdc++ and libc++ it calls the throwing operator. If there is no memory, the exception
// comes from an emergency pool behind a lock that fork() does not protect. If another thread held that lock, the child
// waits forever.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
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

/// A list of plain values. It says when there is no memory, and is then as before.
template <class T>
class HeapList {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));

 public:
  HeapList() noexcept = default;
  HeapList(const HeapList&) = delete;
  HeapList& operator=(const HeapList&) = delete;
  ~HeapList() { give_back(values_); }

  /// Makes room for that many values in all.
  [[nodiscard]] bool reserve(std::size_t count) noexcept {
    if (count <= room_) return true;
    if (count > std::size_t(-1) / 2 / sizeof(T)) return false;
    void* const moved = std::realloc(values_, count * sizeof(T));
    if (!moved) return false;
    values_ = static_cast<T*>(moved);
    room_ = count;
    return true;
  }
  [[nodiscard]] bool add(const T& value) noexcept {
    const T kept = value;  // it may be one of these
    if (size_ == room_ && !reserve(room_ + room_ / 2 + 16)) return false;
    values_[size_++] = kept;
    return true;
  }
  /// Drops the values from `end` on.
  void cut(const T* end) noexcept { size_ = static_cast<std::size_t>(end - values_); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return values_; }
  T* end() noexcept { return values_ + size_; }
  const T* begin() const noexcept { return values_; }
  const T* end() const noexcept { return values_ + size_; }
  T& operator[](std::size_t i) noexcept { return values_[i]; }

 private:
  T* values_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

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

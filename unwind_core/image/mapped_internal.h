// Memory and files by mmap alone: what names and file sections need inside signal handlers, where malloc must not be
// called. All functions are signal-safe, keep errno and are no cancellation points.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// Anonymous pages, zeroed; null when mmap refuses.
void* map_memory(std::size_t size) noexcept;
/// The same for what is written from the first to the last byte: there at once, which spares an interrupt for each
/// page.
void* map_memory_at_once(std::size_t size) noexcept;
void unmap_memory(void* memory, std::size_t size) noexcept;

/// Memory of its own, released with the object. Empty when mmap refused.
class Block {
 public:
  Block() noexcept = default;
  explicit Block(std::size_t size) noexcept : Block(map_memory(size), size) {}
  /// By map_memory_at_once().
  static Block whole(std::size_t size) noexcept { return {map_memory_at_once(size), size}; }
  /// What release() has returned.
  static Block of(void* memory, std::size_t size) noexcept { return {memory, size}; }
  ~Block() {
    if (memory_) unmap_memory(memory_, size_);
  }
  Block(Block&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }

  bool empty() const noexcept { return size_ == 0; }
  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(memory_), size_}; }
  /// Nobody's from now on.
  std::span<std::byte> release() noexcept {
    const std::span<std::byte> all = bytes();
    memory_ = nullptr;
    size_ = 0;
    return all;
  }
  /// False, and nothing changes, when mremap refuses. May move.
  bool resize(std::size_t size) noexcept;

 private:
  Block(void* memory, std::size_t size) noexcept : memory_(memory), size_(memory ? size : 0) {}

  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

struct UnmapDeleter {
  template <class T>
  void operator()(T* object) const noexcept {
    object->~T();
    unmap_memory(object, sizeof(T));
  }
};
/// A T in a mapping of its own.
template <class T>
using Mapped = std::unique_ptr<T, UnmapDeleter>;

/// Null when mmap refuses.
template <class T, class... Args>
Mapped<T> make_mapped(Args&&... args) noexcept {
  void* const memory = map_memory(sizeof(T));
  return Mapped<T>(memory ? new (memory) T(std::forward<Args>(args)...) : nullptr);
}

/// A value that the first to ask makes and everybody after it sees. Who asks meanwhile, perhaps in a signal handler on
/// the same thread, makes another and drops it: nobody ever waits.
template <class T>
class Lazy {
 public:
  Lazy() noexcept = default;
  ~Lazy() { (void)Mapped<T>(value_.load(std::memory_order_relaxed)); }
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;

  /// `make` returns a Mapped<T>; when that is null nothing is kept, and the next to ask tries again.
  template <class Make>
  const T* get(Make make) const noexcept {
    const T* const ready = value_.load(std::memory_order_acquire);
    return ready ? ready : publish(make());
  }

 private:
  const T* publish(Mapped<T> made) const noexcept {
    if (!made) return nullptr;
    T* other = nullptr;
    if (value_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      return made.release();
    return other;
  }

  mutable std::atomic<T*> value_{nullptr};
};

/// What tells one file from another, and from itself after it was written to.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;
  std::uint64_t changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Error io when there is no such regular file.
Result<FileIdentity> identify_file(const char* path) noexcept;
/// The same of a file that is open. `real_path`, where not empty, gets its path without symbolic links,
/// NUL-terminated, or "".
Result<FileIdentity> identify_file(int number, std::span<char> real_path) noexcept;

}  // namespace jitunwind

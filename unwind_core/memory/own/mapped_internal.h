// Memory and files by mmap alone. Names and file sections are needed inside signal handlers, where malloc must not be
// called. All functions are signal-safe, preserve errno and are no cancellation points.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Returns zeroed anonymous pages, or null when mmap refuses.
void* map_memory(std::size_t size) noexcept;
/// Does the same for memory that is written from its first to its last byte. The kernel provides all pages at once,
/// which saves a page fault for each of them.
void* map_memory_at_once(std::size_t size) noexcept;
void unmap_memory(void* memory, std::size_t size) noexcept;

/// A mapping of its own, released with the object. It is empty when mmap refused.
class Block {
 public:
  Block() noexcept = default;
  explicit Block(std::size_t size) noexcept : Block(map_memory(size), size) {}
  /// Makes a block by map_memory_at_once().
  static Block whole(std::size_t size) noexcept { return {map_memory_at_once(size), size}; }
  /// Makes a block of memory that release() has returned.
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
  /// Returns the memory without releasing it. It belongs to no block from now on.
  std::span<std::byte> release() noexcept {
    const std::span<std::byte> all = bytes();
    memory_ = nullptr;
    size_ = 0;
    return all;
  }
  /// Resizes the block, which may move. Returns false and changes nothing when mremap refuses.
  bool resize(std::size_t size) noexcept;

 private:
  Block(void* memory, std::size_t size) noexcept : memory_(memory), size_(memory ? size : 0) {}

  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A block that is kept of what a file or a target says. A process that is looked at may have any number of files, with
/// sections of any size, some of which a few bytes decompress to. All such blocks are counted therefore, and whoever is
/// about to keep another one asks whether there is room.
class KeptBlock : Block {
 public:
  using Block::bytes, Block::empty;
  static constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << (sizeof(void*) == 8 ? 31 : 28);

  KeptBlock() noexcept = default;
  KeptBlock(Block block) noexcept : Block(std::move(block)) { count(bytes().size()); }
  ~KeptBlock() { discount(bytes().size()); }
  KeptBlock(KeptBlock&&) noexcept = default;
  KeptBlock& operator=(KeptBlock&&) noexcept = default;
  /// Makes a block by map_memory_at_once() if there is room.
  static KeptBlock whole(std::size_t size) noexcept { return has_room() ? Block::whole(size) : Block(); }
  bool resize(std::size_t size) noexcept {
    const std::size_t before = bytes().size();
    if (!Block::resize(size)) return false;
    count(size);
    discount(before);
    return true;
  }

  static bool has_room() noexcept { return held_.load() < k_most_bytes; }
  /// Counts what is kept in other blocks.
  static void count(std::uint64_t bytes) noexcept { held_.fetch_add(bytes); }
  static void discount(std::uint64_t bytes) noexcept { held_.fetch_sub(bytes); }

 private:
  [[gnu::visibility("default")]] static constinit std::atomic<std::uint64_t> held_;
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

/// Returns null when mmap refuses.
template <class T, class... Args>
Mapped<T> make_mapped(Args&&... args) noexcept {
  void* const memory = map_memory(sizeof(T));
  return Mapped<T>(memory ? new (memory) T(std::forward<Args>(args)...) : nullptr);
}

/// A value that the first caller makes and every later caller sees. A caller that comes meanwhile, perhaps in a signal
/// handler on the same thread, makes another value and drops it. Nobody ever waits. It is constant-initialised, and the
/// value lasts until somebody takes it.
template <class T>
class MadeOnce {
 public:
  constexpr MadeOnce() noexcept = default;

  /// Null: nobody has made it yet.
  [[gnu::always_inline]] T* if_made() const noexcept { return value_.load(std::memory_order_acquire); }
  /// `make` returns a Mapped<T>. When the pointer is null nothing is kept, and the next caller tries again.
  template <class Make>
  T* get(Make make) const noexcept {
    T* const ready = if_made();
    return ready ? ready : publish(make());
  }
  /// Makes a T of zeros, a table which takes memory where it is written. Null: mmap refuses.
  [[gnu::always_inline]] T* get() const noexcept {
    T* const ready = if_made();
    return ready ? ready : make_zeros();
  }
  /// The value belongs to the caller. Nobody else uses it any more.
  Mapped<T> take() noexcept { return Mapped<T>(value_.exchange(nullptr, std::memory_order_acq_rel)); }

 private:
  [[gnu::noinline, gnu::cold]] T* make_zeros() const noexcept {
    return publish(Mapped<T>(static_cast<T*>(map_memory(sizeof(T)))));
  }
  T* publish(Mapped<T> made) const noexcept {
    if (!made) return nullptr;
    T* other = nullptr;
    if (value_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      return made.release();
    return other;
  }

  mutable std::atomic<T*> value_{nullptr};
};

/// Such a value, which is released with the object.
template <class T>
class Lazy : public MadeOnce<T> {
 public:
  Lazy() noexcept = default;
  ~Lazy() { (void)this->take(); }
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;
};

/// The identity of a file. It differs between files, and changes when a file is written to.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;
  std::uint64_t changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Fails with io when there is no such regular file.
[[gnu::visibility("default")]] Result<FileIdentity> identify_file(const FilePath& file) noexcept;
/// Identifies an open file. `real_path`, unless it is empty, receives the file's path without symbolic links,
/// NUL-terminated, or "".
Result<FileIdentity> identify_file(int number, std::span<char> real_path) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

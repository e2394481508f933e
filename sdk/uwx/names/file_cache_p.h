// Files whose names and source were requested, each of which is read once; and the strings that are handed out.
#pragma once

#include <uwx.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/image/symbol_file.h"

namespace jitunwind::uwx {

/// Strings live as long as the file.
struct SourcePosition {
  const char* inlined = nullptr;  ///< the function that the place is inlined from; null: none
  const char* file = nullptr;
  int line = 0;
  int context = 0;  ///< that of the call around it; 0: no inlined call is left
};

/// Used by one thread at a time. Allocates as libdw does.
class SourceFile {
 public:
  SourceFile() noexcept = default;
  /// The object finds nothing if libdw or the file is missing.
  explicit SourceFile(const char* path) noexcept;
  ~SourceFile();
  SourceFile(SourceFile&& other) noexcept : debug_info_(std::exchange(other.debug_info_, nullptr)) {}
  SourceFile& operator=(SourceFile&& other) noexcept {
    std::swap(debug_info_, other.debug_info_);
    return *this;
  }

  /// `at`: address as in the file, of the instruction itself, not after it. `context` 0: its own position; n: that of
  /// the n-th inlined call around it. Empty: not known.
  SourcePosition find(Addr at, int context) noexcept;

 private:
  void* debug_info_ = nullptr;
};

/// The client's allocator at the time when its user was made.
struct Allocator {
  alloc_cb allocate;
  free_cb release;
};
Allocator current_allocator() noexcept;

/// Strings that an environment hands out. It has 4 KiB of its own, and takes more from the client's allocator if
/// needed.
class StringPool {
 public:
  explicit StringPool(const Allocator& allocator) noexcept : allocator_(allocator) {}
  ~StringPool() { clear(); }
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  /// Room for `size` bytes; empty: there is no memory. It exists until clear().
  std::span<char> room(std::size_t size) noexcept;
  /// A NUL-terminated copy; null: no memory.
  char* keep(std::string_view text) noexcept;
  /// A copy of a string in this process that ends by a NUL, after 64 KiB, or at unreadable memory; null: no memory.
  char* keep(const void* text) noexcept;
  void clear() noexcept;

 private:
  struct Block {
    Block* next;
  };

  const Allocator& allocator_;
  Block* more_ = nullptr;
  std::size_t used_ = 0;
  std::array<char, 4096> first_;
};

class FileCache {
 public:
  explicit FileCache(const Allocator& allocator) noexcept : allocator_(allocator) {}
  ~FileCache();
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;

  struct File {
    SymbolFile symbols;
    /// The position of an address as in the file.
    SourcePosition position(Addr at, int context) noexcept {
      if (!has_source) source = SourceFile(path);
      has_source = true;
      return source.find(at, context);
    }

   private:
    friend class FileCache;
    /// The identity of a file: it differs from that of a former file with the same path.
    struct Identity {
      std::uint64_t device = 0, inode = 0, size = 0;
      std::int64_t seconds = 0, nanoseconds = 0;
      friend bool operator==(const Identity&, const Identity&) = default;
    };

    SourceFile source;
    bool has_source = false;
    Identity identity;
    File* next = nullptr;
    const char* path = nullptr;  // stored after this object
  };

  /// Errors are those of SymbolFile::open(). The file lives as long as the cache.
  Result<File*> find(const char* path) noexcept;
  const Allocator& allocator() const noexcept { return allocator_; }

 private:
  File* add(const char* path, const File::Identity& identity, SymbolFile symbols) noexcept;

  const Allocator allocator_;
  File* first_ = nullptr;
};

}  // namespace jitunwind::uwx

/// The opaque structure of uwx.h.
struct uwx_symbol_cache final {
  explicit uwx_symbol_cache(const jitunwind::uwx::Allocator& allocator) noexcept : files(allocator) {}
  jitunwind::uwx::FileCache files;
};

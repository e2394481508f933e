// Files whose names and source were requested. Each is read once.
#pragma once

#include <cstdint>

#include "jitunwind/sdk/uwx/names/source_file_p.h"
#include "jitunwind/sdk/uwx/names/string_pool_p.h"
#include "jitunwind/unwind_core/image/symbol_file.h"

namespace jitunwind::uwx {

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

// Parts of a file or of a loaded module, copied when they are first looked at: what may be truncated, replaced or
// unmapped by anybody at any moment is never looked at in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

/// The copies live as long as this. Used by one thread at a time; made by make_mapped(), for it is large. Signal-safe.
class CopiedParts {
 public:
  CopiedParts(const CopiedParts&) = delete;
  CopiedParts& operator=(const CopiedParts&) = delete;

  /// Of all there is, copied or not.
  std::uint64_t size() const noexcept { return size_; }
  /// Empty where not all of the part can be read, or it would be too much: bytes of one image, or parts of it. Virtual,
  /// so that libraries which have images of bytes in place alone need not have this.
  virtual std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) noexcept;

  /// Where a part is, or what is in one. Precondition: it is.
  std::uint64_t offset_of(std::span<const std::byte> part) const noexcept;
  /// The memory of a part, which then lives as long as what is returned. Empty: it is not alone in its memory.
  Block take(std::span<const std::byte> part) noexcept;

  /// Strings and symbols of the largest programs are some 100 MiB.
  static constexpr std::uint64_t k_most_bytes = std::uint64_t{512} << 20;

 protected:
  CopiedParts() noexcept = default;
  ~CopiedParts() = default;
  void set_size(std::uint64_t size) noexcept { size_ = size; }

 private:
  /// How many bytes from the first on could be read.
  virtual std::size_t read(std::uint64_t offset, std::span<std::byte> into) noexcept = 0;
  std::span<std::byte> room(std::size_t size) noexcept;

  struct Part {
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes{};
  };

  std::uint64_t size_ = 0;
  std::uint64_t copied_ = 0;
  std::array<Part, 32> parts_{};
  std::size_t count_ = 0;
  std::array<Block, 16> large_{};
  std::size_t large_count_ = 0;
  std::size_t small_used_ = 0;
  std::array<std::byte, 32 * 1024> small_;  // pages that are not used are not touched
};

/// A regular file, open as long as this, or what of it begins at an offset: an object in an archive.
class FileParts final : public CopiedParts {
 public:
  /// is_open() false: there is no such file, or it is empty. `real_path`, where not empty, gets the file's path without
  /// symbolic links, NUL-terminated, or "".
  explicit FileParts(const char* path, std::span<char> real_path = {}, std::uint64_t begin = 0) noexcept;

  bool is_open() const noexcept { return size() != 0; }
  const FileIdentity& identity() const noexcept { return identity_; }
  std::uint64_t begin() const noexcept { return begin_; }
  /// Copies from the file itself; nothing is kept. Returns how many bytes from the first on could be read.
  std::size_t copy(std::uint64_t offset, std::span<std::byte> into) noexcept { return read(offset, into); }
  /// Gives `use` all its bytes in order, piece by piece. False: not all could be read.
  template <class Use>
  bool read_all(Use use) noexcept {
    const Block piece(64 * 1024);
    std::uint64_t offset = 0;
    while (!piece.empty() && offset < size()) {
      const std::size_t got = read(offset, piece.bytes());
      if (got == 0) break;
      use(std::span<const std::byte>(piece.bytes().first(got)));
      offset += got;
    }
    return offset == size();
  }

 private:
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) noexcept override;

  static ReadableFile open(const char* path) noexcept {
    const ErrnoKeeper keeper;
    return ReadableFile::regular(path);
  }

  ReadableFile file_;
  std::uint64_t begin_;
  FileIdentity identity_{};
};

/// A loaded module's memory, which must outlive this.
class MemoryParts final : public CopiedParts {
 public:
  MemoryParts(const Memory& memory, AddrRange range) noexcept : memory_(memory), begin_(range.begin) {
    set_size(range.size());
  }

 private:
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) noexcept override;

  const Memory& memory_;
  MemoryWindow window_;
  Addr begin_;
};

}  // namespace jitunwind

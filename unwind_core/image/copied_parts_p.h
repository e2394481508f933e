// Parts of a file or of a loaded module, copied when they are first used. Anybody may truncate, replace or unmap the
// original at any moment, so nothing is read in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The copies live as long as this object. One thread at a time may use it. It is large: make_mapped() makes it.
/// Signal-safe.
class CopiedParts {
 public:
  CopiedParts(const CopiedParts&) = delete;
  CopiedParts& operator=(const CopiedParts&) = delete;

  /// The size of the whole file or module, copied or not.
  std::uint64_t size() const noexcept { return size_; }
  /// Returns bytes of one image, or parts of it. The result is empty when the part cannot be read in full, or when the
  /// copies would exceed k_most_bytes. The function is virtual so that libraries whose images are all bytes in place
  /// need not link it.
  virtual std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) noexcept;

  /// Returns the offset of a part, or of bytes inside one. Precondition: the bytes lie in a part.
  std::uint64_t offset_of(std::span<const std::byte> part) const noexcept;
  /// Returns the memory of a part; the part then lives as long as the returned block. The result is empty when the
  /// memory holds other parts, too.
  KeptBlock take(std::span<const std::byte> part) noexcept;

  /// The strings and symbols of the largest programs take some 100 MiB.
  static constexpr std::uint64_t k_most_bytes = std::uint64_t{512} << 20;

 protected:
  CopiedParts() noexcept = default;
  ~CopiedParts() = default;
  void set_size(std::uint64_t size) noexcept { size_ = size; }

 private:
  /// Returns how many bytes could be read, counted from the first one.
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
  std::array<KeptBlock, 16> large_{};
  std::size_t large_count_ = 0;
  std::size_t small_used_ = 0;
  std::array<std::byte, 32 * 1024> small_;  // the kernel provides no memory for pages that are not used
};

/// A regular file, open as long as this object. An object in an archive is the part of the file from an offset on.
class FileParts final : public CopiedParts {
 public:
  /// is_open() is false when there is no such file or the file is empty. `real_path`, unless it is empty, receives the
  /// file's path without symbolic links, NUL-terminated, or "".
  explicit FileParts(const FilePath& file, std::span<char> real_path = {}, std::uint64_t begin = 0) noexcept;

  bool is_open() const noexcept { return size() != 0; }
  const FileIdentity& identity() const noexcept { return identity_; }
  std::uint64_t begin() const noexcept { return begin_; }
  /// Copies from the file itself and keeps nothing. Returns how many bytes could be read, counted from the first one.
  std::size_t copy(std::uint64_t offset, std::span<std::byte> into) noexcept { return read(offset, into); }
  /// Passes all bytes to `use` in order, piece by piece. Returns false when not all could be read.
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

  static ReadableFile open(const FilePath& file) noexcept {
    const ErrnoKeeper keeper;
    return ReadableFile::regular(file);
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
#pragma GCC visibility pop

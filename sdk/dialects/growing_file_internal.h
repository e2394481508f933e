// A file that somebody appends to while it is read.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

/// Read as far as it has come, and later from there on. Others may put anything in its place at any moment: it is
/// opened each time, and a link, or what is no regular file, is not read.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path = {}) : path_(std::move(path)) {}
  const std::string& path() const noexcept { return path_; }

  /// Calls `take(piece)` for what has come since the last time, and before that `begin_anew()` where the file is
  /// another one by now, or was cut. Reads at most `most` bytes, and returns how many. `owner`: whose file it must be.
  template <class Take, class BeginAnew>
  std::uint64_t read(std::uint64_t most, std::optional<uid_t> owner, Take take, BeginAnew begin_anew) {
    if (path_.empty()) return 0;
    const ReadableFile file(path_.c_str(), O_NOFOLLOW | O_NONBLOCK);
    struct stat now {};
    if (!file.is_open() || ::fstat(file.number(), &now) != 0 || !S_ISREG(now.st_mode)) return 0;
    if (owner && now.st_uid != *owner) return 0;
    if (now.st_ino != inode_ || now.st_size < offset_) {
      if (std::exchange(inode_, now.st_ino) != 0) begin_anew();
      offset_ = 0;
    }
    const off_t begin = offset_;
    std::array<std::byte, 16384> piece;
    while (offset_ < now.st_size && static_cast<std::uint64_t>(offset_ - begin) < most) {
      const std::uint64_t left = most - static_cast<std::uint64_t>(offset_ - begin);
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), left));
      const long size = read_at(file.number(), piece.data(), wanted, static_cast<std::uint64_t>(offset_));
      if (size <= 0) break;
      offset_ += size;
      take(std::span<const std::byte>(piece).first(static_cast<std::size_t>(size)));
    }
    return static_cast<std::uint64_t>(offset_ - begin);
  }

 private:
  std::string path_;
  ino_t inode_ = 0;
  off_t offset_ = 0;
};

}  // namespace jitunwind

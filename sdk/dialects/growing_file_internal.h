// A file that another process appends to while it is read.
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

/// Reads a file as far as it has come, and later continues from there. Others may replace it at any moment: it is
/// opened anew for each read, and links and files that are not regular are not read.
class GrowingFile {
 public:
  /// `root`: FilePath.
  explicit GrowingFile(std::string path = {}, std::string root = {}) : path_(std::move(path)), root_(std::move(root)) {}
  const std::string& path() const noexcept { return path_; }

  /// Calls `take(piece)` for what was appended since the last time; before that it calls `begin_anew()` if the file was
  /// replaced or cut. Reads at most `most` bytes and returns how many. `owner`: the user whose file it must be; none:
  /// any.
  template <class Take, class BeginAnew>
  std::uint64_t read(std::uint64_t most, std::optional<uid_t> owner, Take take, BeginAnew begin_anew) {
    if (path_.empty()) return 0;
    const ReadableFile file = ReadableFile::regular({path_.c_str(), root_.c_str()}, O_NOFOLLOW);
    struct statx now {};
    constexpr unsigned k_asked = STATX_BASIC_STATS | STATX_BTIME;
    if (!file.is_open() || ::statx(file.number(), "", AT_EMPTY_PATH, k_asked, &now) != 0) return 0;
    if (owner && now.stx_uid != *owner) return 0;
    const Identity identity{now.stx_ino, now.stx_btime.tv_sec, now.stx_btime.tv_nsec};
    if (identity != identity_ || now.stx_size < offset_) {
      if (std::exchange(identity_, identity).inode != 0) begin_anew();
      offset_ = 0;
    }
    const std::uint64_t begin = offset_;
    std::array<std::byte, 16384> piece;
    while (offset_ < now.stx_size && offset_ - begin < most) {
      const std::uint64_t left = most - (offset_ - begin);
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), left));
      const long size = read_at(file.number(), piece.data(), wanted, offset_);
      if (size <= 0) break;
      offset_ += static_cast<std::uint64_t>(size);
      take(std::span<const std::byte>(piece).first(static_cast<std::size_t>(size)));
    }
    return offset_ - begin;
  }

 private:
  /// Tells a file from its successor. File systems reuse the inode number of a removed file, so the time of creation
  /// counts as well, if the file system records it.
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t made_seconds = 0;
    std::uint32_t made_nanoseconds = 0;
    bool operator==(const Identity&) const = default;
  };

  std::string path_;
  std::string root_;
  Identity identity_;
  std::uint64_t offset_ = 0;
};

}  // namespace jitunwind

#include <limits.h>

#include <array>
#include <cstring>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// The part of a path that is still to be followed. It is kept at the end of its room, since links are put in front.
class PathLeft {
 public:
  /// Returns false if there is no room.
  bool put_in_front(std::string_view text) noexcept {
    if (text.size() > begin_) return false;
    begin_ -= text.size();
    text.copy(room_.data() + begin_, text.size());
    return true;
  }
  /// Takes the next name without its slashes; "" at the end. The name is overwritten by the next call. A name
  /// that is too long for the kernel is cut, and still too long for it.
  const char* next() noexcept {
    while (begin_ < room_.size() && room_[begin_] == '/') ++begin_;
    std::size_t size = 0;
    while (begin_ + size < room_.size() && room_[begin_ + size] != '/' && size <= NAME_MAX) ++size;
    std::memcpy(name_.data(), room_.data() + begin_, size);
    name_[size] = '\0';
    begin_ += size;
    return name_.data();
  }
  bool is_empty() const noexcept { return begin_ == room_.size(); }

 private:
  std::array<char, std::size_t{2} * PATH_MAX> room_;
  std::size_t begin_ = room_.size();
  std::array<char, NAME_MAX + 2> name_;
};

/// The folders on the way, the root first. Every one stays open, so that ".." goes back to it wherever it was moved
/// meanwhile.
class FoldersPassed {
 public:
  bool push(ReadableFile folder) noexcept {
    if (!folder.is_open() || count_ == folders_.size()) return false;
    folders_[count_++] = std::move(folder);
    return true;
  }
  void keep(std::size_t count) noexcept {
    while (count_ > count) folders_[--count_] = ReadableFile();
  }
  ReadableFile& last() noexcept { return folders_[count_ - 1]; }
  std::size_t count() const noexcept { return count_; }

 private:
  std::array<ReadableFile, 64> folders_;
  std::size_t count_ = 0;
};

int fail(int reason) noexcept { return errno = reason, -1; }

}  // namespace

int find_below_root(const FilePath& file, int flags) noexcept {
  constexpr int k_most_links = 40;  // path_resolution(7)
  FoldersPassed passed;
  PathLeft left;
  if (!left.put_in_front(file.path)) return fail(ENAMETOOLONG);
  if (!passed.push(ReadableFile(file.root, O_PATH | O_DIRECTORY))) return -1;
  std::array<char, PATH_MAX> target;
  for (int links = 0;;) {
    const std::string_view name = left.next();
    if (name.empty()) return passed.last().release();
    if (name == "." || name == "..") {
      if (!ReadableFile(passed.last().number(), ".", O_PATH).is_open()) return -1;  // it is no folder
      if (name == ".." && passed.count() > 1) passed.keep(passed.count() - 1);
      continue;
    }
    ReadableFile next(passed.last().number(), name.data(), O_PATH | O_NOFOLLOW);
    if (!next.is_open()) return -1;
    const bool stops_here = left.is_empty() && (flags & O_NOFOLLOW) != 0;
    const ssize_t size = stops_here ? 0 : ::readlinkat(next.number(), "", target.data(), target.size());
    if (size <= 0) {
      if (!passed.push(std::move(next))) return fail(ELOOP);
      continue;
    }
    const std::string_view leads_to(target.data(), static_cast<std::size_t>(size));
    if (++links > k_most_links) return fail(ELOOP);
    if (leads_to.starts_with('/')) passed.keep(1);
    if (!left.put_in_front(leads_to)) return fail(ENAMETOOLONG);
  }
}

}  // namespace jitunwind

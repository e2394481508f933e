#include "jitunwind/unwind_core/uncancelled_internal.h"

#include <limits.h>

#include <algorithm>
#include <new>
#include <vector>

namespace jitunwind {

std::string link_target(int folder, const char* name) {
  std::array<char, PATH_MAX + 1> text;
  const ssize_t length = ::readlinkat(folder, name, text.data(), text.size());
  const bool is_whole = length > 0 && static_cast<std::size_t>(length) < text.size();
  return is_whole ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The kernel returns at most a page of most files of /proc at once.
std::optional<std::string> read_whole(const ReadableFile& file, std::size_t most) {
  std::array<char, 4096> piece;
  std::string text;
  while (text.size() < most) {
    const long got = file.read(piece.data(), std::min(most - text.size(), piece.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// Every folder that was passed stays open, so that ".." goes back to it wherever it was moved meanwhile.
int find_below_root(const FilePath& file, int flags) noexcept try {
  constexpr std::size_t k_most_links = 40;  // path_resolution(7)
  constexpr std::size_t k_most_folders = 64;
  std::vector<ReadableFile> passed;
  passed.emplace_back(file.root, O_PATH | O_DIRECTORY);
  std::string left = file.path;
  for (std::size_t links = 0; passed.back().is_open() && passed.size() < k_most_folders;) {
    left.erase(0, left.find_first_not_of('/'));
    if (left.empty()) return passed.back().release();
    const std::string name = left.substr(0, left.find('/'));
    left.erase(0, name.size());
    if (name == "." || name == "..") {
      if (!ReadableFile(passed.back().number(), ".", O_PATH).is_open()) return -1;  // it is no folder
      if (name == ".." && passed.size() > 1) passed.pop_back();
      continue;
    }
    ReadableFile next(passed.back().number(), name.c_str(), O_PATH | O_NOFOLLOW);
    if (!next.is_open()) return -1;
    const std::string target = left.empty() && (flags & O_NOFOLLOW) != 0 ? "" : link_target(next.number(), "");
    if (target.empty()) {
      passed.push_back(std::move(next));
      continue;
    }
    if (++links > k_most_links) break;
    if (target.starts_with('/')) passed.erase(passed.begin() + 1, passed.end());
    left.insert(0, target);
  }
  if (passed.back().is_open()) errno = ELOOP;
  return -1;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

}  // namespace jitunwind

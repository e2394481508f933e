// Functions that give strings. They are not in the core, which neither throws nor uses operator new.
#include <limits.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

std::string Error::text() const {
  std::string text = std::string(what[0] != '\0' ? what : error_text(code)) + " (" + error_name(code);
  if (at != 0) {
    char place[32];
    std::snprintf(place, sizeof place, ", at 0x%" PRIx64, at);
    text += place;
  }
  return text + ")";
}

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

}  // namespace jitunwind

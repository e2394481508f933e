// What the kernel lets this process execute.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "unwind_core/errno_keeper_p.h"
#include "unwind_core/memory/local.h"

namespace jitunwind {
namespace {

/// The lines of /proc/thread-self/maps, "begin-end rwxp ...", hex, ascending. Takes the text in any pieces.
class MapsParser {
 public:
  explicit MapsParser(Addr wanted) noexcept : wanted_(wanted) {}

  /// False when enough was seen.
  bool feed(char c) noexcept {
    if (c == '\n') {
      if (found_) return false;
      field_ = Field::begin;
      range_ = {};
      return true;
    }
    switch (field_) {
      case Field::begin:
        return c == '-' ? next(Field::end) : digit(c, range_.begin);
      case Field::end:
        return c == ' ' ? next(Field::mode) : digit(c, range_.end);
      case Field::mode:
        if (c == ' ') return next(Field::rest);
        if (c == 'x') executable_ = true;
        return true;
      case Field::rest:
        break;
    }
    return range_.begin <= wanted_;
  }

  bool is_executable() const noexcept { return found_ && executable_; }

 private:
  enum class Field : unsigned char { begin, end, mode, rest };

  bool next(Field field) noexcept {
    field_ = field;
    if (field == Field::mode) {
      found_ = range_.contains(wanted_);
      executable_ = false;
    }
    return field != Field::rest || !found_;
  }

  static bool digit(char c, Addr& into) noexcept {
    into = into << 4 | static_cast<Addr>(c <= '9' ? c - '0' : c - 'a' + 10);
    return true;
  }

  Addr wanted_;
  AddrRange range_{};
  Field field_ = Field::begin;
  bool found_ = false;
  bool executable_ = false;
};

}  // namespace

std::optional<bool> LocalMemory::is_executable(Addr at, MemoryWindow&) const noexcept {
  const ErrnoKeeper keeper;
  // Not open() and read(), which are cancellation points.
  const long file = ::syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return std::nullopt;
  MapsParser parser(at);
  std::array<char, 1024> buffer;
  long got = 0;
  for (bool more = true; more;) {
    got = ::syscall(SYS_read, file, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    for (long i = 0; i < got && more; ++i) more = parser.feed(buffer[static_cast<std::size_t>(i)]);
    more = more && got > 0;
  }
  ::syscall(SYS_close, file);
  if (got < 0) return std::nullopt;
  return parser.is_executable();
}

}  // namespace jitunwind

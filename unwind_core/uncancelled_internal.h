// System calls that are cancellation points in the C library (POSIX, 2.9.5.2; pthreads(7)). Nothing in this library is
// a cancellation point: most of it is noexcept, so a cancelled thread would end the process.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace jitunwind {

/// Returns "/proc/thread-self/fd/NUMBER", the path of the file that is open by that number. Signal-safe.
inline std::array<char, 40> link_of(int number) noexcept {
  constexpr std::string_view k_folder = "/proc/thread-self/fd/";
  std::array<char, 40> text{};
  const std::size_t at = k_folder.copy(text.data(), k_folder.size());
  std::to_chars(text.data() + at, text.data() + text.size() - 1, number);
  return text;
}

/// The name of a file. The folder `root` is "/" for its path: symbolic links of the path lead to files in that folder,
/// and ".." does not lead out of it. Both texts must outlive this.
struct FilePath {
  FilePath(const char* name, const char* its_root = "") noexcept : path(name), root(its_root) {}

  const char* path;
  const char* root;  ///< "": this process's own
  bool has_root() const noexcept { return *root != '\0'; }
};

/// The target of a link in an open folder; `name` is "" for a link that is open itself. "": it is none, cannot be read,
/// or leads to something without a path. Allocates.
std::string link_target(int folder, const char* name);

/// Finds a file below a root without opening it (open(2), O_PATH), whatever others rename and replace meanwhile. Links
/// are followed here, one after the other. openat2(2) can do this as well, but it is not on Linux before 5.6, under
/// qemu-user, and where a filter of system calls does not know it. `flags`: O_NOFOLLOW or 0. Returns its number, or -1
/// with errno. Allocates nothing; it takes 16 KiB of stack.
[[gnu::visibility("default")]] int find_below_root(const FilePath& file, int flags) noexcept;

/// A file that is open for reading as long as this object: open(2), read(2) and close(2), which set errno as usual. The
/// library keeps no file of its own process open for longer, since a program may close any number and reuse it for
/// something else. Signal-safe, unless a file has a root.
class ReadableFile {
 public:
  ReadableFile() noexcept = default;
  explicit ReadableFile(const char* path, int flags = 0) noexcept : ReadableFile(AT_FDCWD, path, flags) {}
  /// `folder` is the number of an open folder. `flags`: those of open(2); also O_RDWR.
  ReadableFile(int folder, const char* path, int flags = 0) noexcept : number_(number_of(path, flags, folder)) {}
  ~ReadableFile() {
    if (is_open()) ::syscall(SYS_close, number_);
  }
  ReadableFile(ReadableFile&& other) noexcept : number_(other.release()) {}
  ReadableFile& operator=(ReadableFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  /// Opens a regular file, and fails with EISDIR or EINVAL for any other. Opening a FIFO or a device may have effects,
  /// and anybody who may write to the folder can put a link to one there. The file is therefore checked without opening
  /// it, and the same file is opened then. If there is no /proc, it is opened by its name again, unless it has a root.
  static ReadableFile regular(const FilePath& file, int flags = 0) noexcept {
    const ReadableFile found = find(file, flags);
    struct stat status;
    if (!found.is_open() || ::fstat(found.number_, &status) != 0) return ReadableFile(-1);
    if (!S_ISREG(status.st_mode)) {
      errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
      return ReadableFile(-1);
    }
    const int number = number_of(link_of(found.number_).data(), 0);
    const bool is_last_try = number >= 0 || file.has_root();
    return ReadableFile(is_last_try ? number : number_of(file.path, O_NONBLOCK | O_NOCTTY | flags));
  }
  /// Finds a file without opening it (open(2), O_PATH).
  static ReadableFile find(const FilePath& file, int flags = 0) noexcept {
    return ReadableFile(file.has_root() ? find_below_root(file, flags) : number_of(file.path, O_PATH | flags));
  }

  bool is_open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  /// Returns the number without closing it.
  int release() noexcept { return std::exchange(number_, -1); }
  /// Returns 0 at the end of the file, and -1 on an error.
  long read(char* into, std::size_t size) const noexcept { return ::syscall(SYS_read, number_, into, size); }

 private:
  explicit ReadableFile(int number) noexcept : number_(number) {}
  static int number_of(const char* path, int flags, int folder = AT_FDCWD) noexcept {
    return static_cast<int>(::syscall(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_LARGEFILE | flags, 0));
  }

  int number_ = -1;
};

/// Reads from the file's position to its end, but at most `most` bytes. Empty: it cannot be read, and errno has the
/// reason. Allocates.
[[gnu::visibility("default")]] std::optional<std::string> read_whole(const ReadableFile& file,
                                                                     std::size_t most = ~std::size_t{0});

/// Reads a file by lines. The buffer keeps the bytes behind the last line; no longer line fits.
template <std::size_t size>
class LineReader {
 public:
  explicit LineReader(const ReadableFile& file) noexcept : file_(file) {}

  /// Gets the next line without its end. Returns false when there is none. A longer line comes in parts, each as a
  /// line.
  bool next(std::string_view& out) noexcept {
    for (;;) {
      const std::string_view rest(room_.data() + begin_, end_ - begin_);
      const std::size_t line_end = rest.find('\n');
      if (line_end != rest.npos || (rest.size() == size || (is_at_end_ && !rest.empty()))) {
        out = rest.substr(0, line_end);
        begin_ += line_end == rest.npos ? rest.size() : line_end + 1;
        return true;
      }
      if (is_at_end_) return false;
      fill(rest);
    }
  }

 private:
  void fill(std::string_view rest) noexcept {
    rest.copy(room_.data(), rest.size());
    begin_ = 0;
    end_ = rest.size();
    const long got = file_.read(room_.data() + end_, size - end_);
    is_at_end_ = got <= 0;
    if (got > 0) end_ += static_cast<std::size_t>(got);
  }

  const ReadableFile& file_;
  std::array<char, size> room_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool is_at_end_ = false;
};

// The following functions use pread(2) and pwrite(2). 32-bit CPUs take an offset as two arguments, the lower half first
// if they are little-endian.

/// `call`: SYS_pread64 or SYS_pwrite64. Signal-safe.
inline long transfer_at(long call, int file, const void* bytes, std::size_t size, std::uint64_t offset) noexcept {
  if constexpr (sizeof(long) == sizeof offset)
    return ::syscall(call, file, bytes, size, static_cast<long>(offset));
  else
    return ::syscall(call, file, bytes, size, static_cast<long>(offset & 0xffff'ffff), static_cast<long>(offset >> 32));
}
inline long read_at(int file, void* into, std::size_t size, std::uint64_t offset) noexcept {
  return transfer_at(SYS_pread64, file, into, size, offset);
}

inline long write_at(int file, const void* from, std::size_t size, std::uint64_t offset) noexcept {
  return transfer_at(SYS_pwrite64, file, from, size, offset);
}

// process_vm_readv(2) and process_vm_writev(2) are no cancellation points. They are here because of their last
// argument.

/// `call` is SYS_process_vm_readv or SYS_process_vm_writev. Returns the number of bytes, or -1 with errno. The kernel's
/// flags are a long and the seventh argument of syscall(). x86-64 passes that argument on the stack, where the upper
/// half of an int would be undefined (System V ABI, 3.2.3); the kernel refuses such flags. Signal-safe.
inline long copy_between(long call, pid_t process, std::span<const iovec> here, std::span<const iovec> there) noexcept {
  constexpr unsigned long k_no_flags = 0;
  return ::syscall(call, process, here.data(), here.size(), there.data(), there.size(), k_no_flags);
}

/// The size to which the kernel lets files grow; it ends a program that exceeds it by SIGXFSZ.
inline std::uint64_t largest_file() noexcept {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::uint64_t>::max();
  return limit.rlim_cur;
}

/// Writes the text in one system call. Failures are not reported, because there is nobody to report them to.
/// Signal-safe.
inline void write_to_standard_error(std::string_view text) noexcept {
  (void)::syscall(SYS_write, STDERR_FILENO, text.data(), text.size());
}

/// The time of a clock in nanoseconds; 0 if there is no such clock. Signal-safe.
inline std::int64_t nanoseconds_of(clockid_t clock) noexcept {
  timespec time{};
  (void)::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Sleeps for this long, or less when a signal comes. Signal-safe.
inline void sleep_for_nanoseconds(long nanoseconds) noexcept {
  const timespec time{0, nanoseconds};
  (void)::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace jitunwind

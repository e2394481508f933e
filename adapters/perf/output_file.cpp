#include "jitunwind/adapters/perf/output_file_p.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

// Files that are mapped have to be open for reading.
constexpr int k_appending = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

Error not_written(const char* why) noexcept { return {ErrorCode::io, static_cast<Addr>(errno), why}; }

/// Whether the file was changed before this process began, by the clock of files. A second is between the two, since
/// the kernel rounds both.
bool is_of_earlier_process(const struct stat& status) {
  timespec now, since_boot;
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::string text = ProcessFolder::own().start_time();
  long ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  const long age = since_boot.tv_sec - ticks / ::sysconf(_SC_CLK_TCK);
  return status.st_mtim.tv_sec < now.tv_sec - age - 1;
}

bool is_own(const struct stat& status) noexcept {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_nlink == 1;
}

}  // namespace

Status OutputFile::open(std::string path, std::uint64_t most_bytes, IfBegun if_begun) {
  path_ = std::move(path);
  most_bytes_ = most_bytes;
  return make(if_begun);
}

Status OutputFile::make(IfBegun if_begun) noexcept {
  struct stat status;
  for (int attempts = 0; attempts != 2; ++attempts) {
    file_ = ReadableFile(path_.c_str(), k_appending | O_CREAT | O_EXCL);
    const bool is_new = file_.is_open();
    if (!is_new && errno != EEXIST) return not_written("the file cannot be made");
    if (!is_new) file_ = ReadableFile(path_.c_str(), k_appending);
    if (!file_.is_open() || ::fstat(file_.number(), &status) != 0 || !is_own(status))
      return not_written("the file is somebody else's, or is no file");
    device_ = status.st_dev;
    inode_ = status.st_ino;
    if (is_new && ::fchmod(file_.number(), S_IRUSR | S_IWUSR) == 0) return Done{};
    if (!is_of_earlier_process(status))
      return if_begun == IfBegun::continue_it ? Status(Done{}) : Status(not_written("somebody else writes the file"));
    if (::unlink(path_.c_str()) != 0) return not_written("an older file cannot be removed");
  }
  return not_written("the file cannot be made");
}

/// Finds the state of the same file, which the program may have closed.
Status OutputFile::check(struct stat& status) noexcept {
  const auto is_it = [&] {
    return ::fstat(file_.number(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  };
  if (is_it()) return Done{};
  (void)file_.release();  // the number is somebody else's, or nobody's
  file_ = ReadableFile(path_.c_str(), k_appending);
  if (file_.is_open() && is_it()) return Done{};
  return not_written("the file was removed or replaced");
}

Status OutputFile::append(std::span<const iovec> pieces) noexcept {
  struct stat status;
  if (const Status same = check(status); !same) return same;
  std::uint64_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  const auto before = static_cast<std::uint64_t>(status.st_size);
  is_full_ = before + size > std::min(most_bytes_, largest_file());
  if (is_full_) return Error{ErrorCode::io, before, "the file would be larger than it may be"};
  const long written = ::syscall(SYS_writev, file_.number(), pieces.data(), pieces.size());
  if (written == static_cast<long>(size)) {
    written_ += size;
    return Done{};
  }
  const Error error = not_written("the file cannot be written");
  // Others may have appended meanwhile, whose entries stay.
  if (written > 0 && ::fstat(file_.number(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) == before + static_cast<std::uint64_t>(written))
    (void)!::ftruncate(file_.number(), static_cast<off_t>(before));
  return error;
}

Status OutputFile::clear() noexcept {
  struct stat status;
  if (const Status same = check(status); !same) return same;
  if (static_cast<std::uint64_t>(status.st_size) != written_) return not_written("others write the file, too");
  if (::ftruncate(file_.number(), 0) != 0) return not_written("the file cannot be made empty");
  written_ = 0;
  return Done{};
}

}  // namespace jitunwind

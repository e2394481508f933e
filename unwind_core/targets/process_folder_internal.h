// What the kernel tells of a process: proc(5).
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

struct ProcessStatus {
  std::string name{};
  char state = '?';  ///< proc_pid_stat(5)
  pid_t group = 0;   ///< the process that a thread belongs to
  pid_t parent = 0;
  pid_t tracer = 0;           ///< 0: none
  uid_t user = 0;             ///< the real one
  uid_t file_user = 0;        ///< whose the files are that it makes
  pid_t own_number = 0;       ///< what it takes for its number itself, in its own namespace of processes; 0: not told
  std::uint64_t blocked = 0;  ///< signals, bit number - 1
  bool has_memory = false;    ///< false: a zombie, one that is about to be one, or a thread of the kernel's
  bool is_of_kernel = false;  ///< a thread of the kernel's
};

/// Where a link leads to; "": it is none, cannot be read, or leads to where no path does.
std::string link_target(const std::string& path);

/// A file that is open in one way or another while this lives.
class MemoryFile {
 public:
  MemoryFile() noexcept = default;
  MemoryFile(int folder, const char* name, int flags) noexcept
      : number_(static_cast<int>(::syscall(SYS_openat, folder, name, flags | O_CLOEXEC | O_LARGEFILE, 0))) {}
  ~MemoryFile() {
    if (is_open()) ::syscall(SYS_close, number_);
  }
  MemoryFile(MemoryFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  bool is_open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }

 private:
  int number_ = -1;
};

/// /proc/PID, open: it stays that of one process, whoever has its number later.
class ProcessFolder {
 public:
  explicit ProcessFolder(pid_t process) noexcept;

  bool is_open() const noexcept { return folder_.is_open(); }
  pid_t process() const noexcept { return process_; }
  /// None: it cannot be read; errno says why. Of larger files the beginning.
  std::optional<std::string> read(const std::string& name, std::size_t most = k_most) const;
  std::optional<ProcessStatus> status() const;
  /// Ascending. Empty where the process is gone. `is_whole` becomes false where others may be there as well: the kernel
  /// ends its list at a thread that is gone before the next one is asked for.
  std::vector<pid_t> threads(bool* is_whole = nullptr) const;
  /// Whether it will execute nothing any more. The first thread of a process may have ended while others go on.
  bool has_ended(pid_t thread) const;
  std::string name_of_thread(pid_t thread) const;
  /// /proc/PID/mem for reading and writing, or else for reading.
  MemoryFile open_memory() const noexcept;
  /// What goes in front of its paths so that they are of its root folder and mount namespace; "" where these are ours.
  /// For as long as this lives.
  std::string root() const;
  /// Where one of its files is that is a link; "": it cannot be read.
  std::string link(const std::string& name) const { return link_target(path() + "/" + name); }
  /// Of the folder itself. For as long as this lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(folder_.number()); }

  static constexpr std::size_t k_most = std::size_t{256} << 20;

 private:
  pid_t process_;
  ReadableFile folder_;
};

}  // namespace jitunwind

// A process according to the kernel: proc(5).
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Calls `action(name)` for each entry of an open folder: getdents(2). opendir() allocates, and readdir() is a
/// cancellation point.
template <class Action>
void each_entry(const ReadableFile& folder, Action action) {
  std::array<char, 4096> entries;
  constexpr std::size_t k_length_at = 16, k_name_at = 19;  // in struct linux_dirent64
  for (long got; (got = ::syscall(SYS_getdents64, folder.number(), entries.data(), entries.size())) > 0;) {
    for (std::string_view rest(entries.data(), static_cast<std::size_t>(got)); rest.size() > k_name_at;) {
      std::uint16_t length;
      std::memcpy(&length, rest.data() + k_length_at, sizeof length);
      action(rest.data() + k_name_at);
      rest.remove_prefix(std::min<std::size_t>(length, rest.size()));
    }
  }
}

struct ProcessStatus {
  std::string name{};
  char state = '?';  ///< proc_pid_stat(5)
  pid_t group = 0;   ///< the process that a thread belongs to
  pid_t parent = 0;
  pid_t tracer = 0;           ///< 0: none
  uid_t user = 0;             ///< the real user
  uid_t file_user = 0;        ///< owner of the files that it makes
  pid_t own_number = 0;       ///< its number in its own namespace of processes; 0: not known
  std::uint64_t blocked = 0;  ///< signals, as bits: number - 1
  bool has_memory = false;    ///< false: a zombie, a process that is about to be one, or a thread of the kernel's
  bool is_of_kernel = false;  ///< a thread of the kernel's
};

/// /proc/PID, open: it stays that of one process, also if its number is reused.
class ProcessFolder {
 public:
  explicit ProcessFolder(pid_t process) noexcept;
  /// This process's, which may have another number in the namespace of processes that /proc shows.
  static ProcessFolder own() noexcept { return {::getpid(), "/proc/self"}; }

  bool is_open() const noexcept { return folder_.is_open(); }
  pid_t process() const noexcept { return process_; }
  /// Empty: it cannot be read, and errno has the reason. Larger files are cut to `most` bytes.
  std::optional<std::string> read(const std::string& name, std::size_t most = k_most) const;
  Mappings mappings() const;  ///< empty: they cannot be read
  std::optional<ProcessStatus> status() const;
  /// The threads in ascending order. Empty if the process is gone. `is_whole` becomes false if there may be others: the
  /// kernel ends its list at a thread that disappears before the next one is read.
  std::vector<pid_t> threads(bool* is_whole = nullptr) const;
  /// Whether it will execute nothing any more. The first thread of a process may have ended while others continue.
  bool has_ended(pid_t thread) const;
  std::string name_of_thread(pid_t thread) const;
  /// Its start in ticks after that of the machine, which tells it from later processes of its number. "": not known.
  std::string start_time() const;
  /// Opens /proc/PID/mem for reading and writing, or else for reading.
  ReadableFile open_memory() const noexcept;
  /// The prefix of its paths that leads to its root folder and mount namespace; "": both are those of this process.
  /// Valid during the lifetime of this object.
  std::string root() const;
  /// The target of one of its files that is a link; "": it cannot be read.
  std::string link(const std::string& name) const { return link_target(folder_.number(), name.c_str()); }
  /// The path of the folder itself. Valid during the lifetime of this object.
  std::string path() const { return "/proc/self/fd/" + std::to_string(folder_.number()); }

  static constexpr std::size_t k_most = std::size_t{256} << 20;

 private:
  ProcessFolder(pid_t process, const char* path) noexcept : process_(process), folder_(path, O_DIRECTORY) {}

  pid_t process_;
  ReadableFile folder_;
};

}  // namespace jitunwind
#pragma GCC visibility pop

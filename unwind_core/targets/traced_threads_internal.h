// The threads of another process, stopped: ptrace(2). A process that was attached to is let go when this is destroyed,
// and goes on with the signals that it had.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/registers.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {

struct TracedThread {
  pid_t id = 0;
  std::string name{};  ///< as the kernel has it
  int signal = 0;      ///< it was about to get when it was stopped; 0: none
  bool is_stopped = false;
  bool is_gone = false;
};

/// Tracing belongs to the thread that began it: all functions are called by that one, the destructor included.
class TracedThreads {
 public:
  explicit TracedThreads(const ProcessFolder& folder) noexcept : folder_(folder) {}
  ~TracedThreads() { let_go(); }
  TracedThreads(const TracedThreads&) = delete;
  TracedThreads& operator=(const TracedThreads&) = delete;

  /// Attaches to every thread (PTRACE_SEIZE) and stops it (PTRACE_INTERRUPT), until there are no others. What does not
  /// stop within a second, as in an uninterruptible wait of the kernel's, is listed as not stopped. 0, or the errno of
  /// the first thread that could not be attached to: then none is.
  int stop_all();
  /// The threads of a process that the caller traces and has stopped by itself.
  void take_stopped();

  /// Every thread goes on, and gets the signal that it was about to get.
  void let_go() noexcept;

  /// By stop_all(), and not let go.
  bool is_attached() const noexcept { return is_attached_; }
  /// Between stop_all() and let_go(), the last time; 0: there was none.
  std::uint64_t stopped_nanoseconds() const noexcept { return stopped_ns_; }
  std::span<const TracedThread> all() const noexcept { return threads_; }
  /// By PTRACE_GETREGSET. Error io: it is not stopped, or gone; truncated: its registers are those of another CPU.
  static Result<RegisterFile> registers(pid_t thread, const Arch& arch) noexcept;

 private:
  bool is_known(pid_t thread) const noexcept;
  bool attach_new(int& failure);
  void wait_for_stops() noexcept;

  const ProcessFolder& folder_;
  std::vector<TracedThread> threads_;
  bool is_attached_ = false;
  std::int64_t stopped_since_ns_ = 0;  // 0: no thread was told to stop
  std::uint64_t stopped_ns_ = 0;
};

}  // namespace jitunwind

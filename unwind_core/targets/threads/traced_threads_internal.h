// The threads of another process, stopped: ptrace(2). A process that was attached to is let go when this is destroyed,
// or when this process ends, and goes on with the signals that it had.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/registers.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"

namespace jitunwind {

struct TracedThread {
  pid_t id = 0;
  std::string name{};  ///< as the kernel has it
  int signal = 0;      ///< it was about to get when it was stopped; 0: none
  bool is_stopped = false;
  bool is_gone = false;
  std::vector<std::byte> registers{};  ///< PTRACE_GETREGSET, when all had stopped; empty: it had not

  /// Error io: it did not stand still; truncated: its registers are those of another CPU.
  Result<RegisterFile> registers_of(const Arch& arch) const noexcept;
};

/// Tracing belongs to a thread, and a thread that does not stop cannot be let go, except by the end of its tracer
/// (ptrace(2), "Attaching and detaching"). So a thread of this process's own attaches, and its end lets everything go.
class TracedThreads {
 public:
  explicit TracedThreads(const ProcessFolder& folder) noexcept : folder_(folder) {}
  ~TracedThreads() { let_go(); }
  TracedThreads(const TracedThreads&) = delete;
  TracedThreads& operator=(const TracedThreads&) = delete;

  /// Attaches to every thread (PTRACE_SEIZE) and stops it (PTRACE_INTERRUPT), until there are no others. What does not
  /// stop within a second, as in an uninterruptible wait of the kernel's, is listed as not stopped. They are let go
  /// after `longest_ns` at the latest. 0, or the errno of the first thread that could not be attached to: then none is.
  /// Throws std::bad_alloc, also where the system makes no more threads.
  int stop_all(std::int64_t longest_ns = k_for_ever);
  /// The threads of a process that the caller traces and has stopped by itself.
  void take_stopped();

  /// Every thread goes on, and gets the signal that it was about to get. False: they went on before, since the time was
  /// over.
  bool let_go() noexcept;

  /// By stop_all(), and not let go.
  bool is_attached() const noexcept { return is_attached_; }
  /// Between stop_all() and let_go(), the last time; 0: there was none.
  std::uint64_t stopped_nanoseconds() const noexcept { return stopped_ns_; }
  std::span<const TracedThread> all() const noexcept { return threads_; }

  static constexpr std::int64_t k_for_ever = std::numeric_limits<std::int64_t>::max();

 private:
  enum Turn : std::uint32_t { tracer_stops, all_stand, overdue, over };

  static void trace(void* self) noexcept;
  void attach_all();
  bool attach_new();
  void wait_for_stops() noexcept;
  void hold() noexcept;

  const ProcessFolder& folder_;
  std::vector<TracedThread> threads_;
  std::unordered_set<pid_t> known_;  // attached to
  std::size_t newest_ = 0;           // of the threads, those from here on have been attached to last
  int failure_ = 0;                  // errno
  bool is_attached_ = false;
  std::int64_t longest_ns_ = k_for_ever;
  std::int64_t stopped_since_ns_ = 0;  // 0: no thread was told to stop
  std::uint64_t stopped_ns_ = 0;
  OwnThread tracer_;
  WaitedWord turn_;
};

}  // namespace jitunwind

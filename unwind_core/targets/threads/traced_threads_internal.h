// The threads of another process, stopped: ptrace(2). An attached process is released when this object is destroyed, or
// when this process ends, and continues with the signals that it had.
#pragma once

#include <sys/types.h>

#include <atomic>
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
  std::string name{};  ///< the kernel's name for it
  int signal = 0;      ///< signal that it was about to get when it was stopped; 0: none
  bool is_stopped = false;
  bool is_gone = false;
  std::vector<std::byte> registers{};  ///< PTRACE_GETREGSET, when all had stopped; empty: this one had not

  /// Error io: it was not stopped; truncated: its registers are those of another CPU.
  Result<RegisterFile> registers_of(const Arch& arch) const noexcept;
};

/// Tracing belongs to a thread, and a thread that does not stop cannot be released, except by the end of its tracer
/// (ptrace(2), "Attaching and detaching"). A thread of this process's own therefore attaches, and its end releases all
/// of them.
class TracedThreads {
 public:
  explicit TracedThreads(const ProcessFolder& folder) noexcept : folder_(folder) {}
  ~TracedThreads() { let_go(); }
  TracedThreads(const TracedThreads&) = delete;
  TracedThreads& operator=(const TracedThreads&) = delete;

  /// Attaches to every thread (PTRACE_SEIZE) and stops it (PTRACE_INTERRUPT), until there are no others. A thread that
  /// does not stop within a second, for example in an uninterruptible wait of the kernel's, is listed as not stopped.
  /// All are released after `longest_ns` at the latest. Returns 0, or the errno of the first thread that could not be
  /// attached to: none is attached then. Throws std::bad_alloc, also if the system makes no more threads.
  int stop_all(std::int64_t longest_ns = k_for_ever);
  /// Takes the threads of a process that the caller traces and has stopped by itself.
  void take_stopped();

  /// Every thread continues, and gets the signal that it was about to get. False: they continued before, since the time
  /// was over.
  bool let_go() noexcept;

  /// Whether stop_all() has attached to the threads, and they are not released.
  bool is_attached() const noexcept { return is_attached_; }
  /// The last duration between stop_all() and let_go(); 0: there was none.
  std::uint64_t stopped_nanoseconds() const noexcept { return stopped_ns_; }
  std::span<const TracedThread> all() const noexcept { return threads_; }

  static constexpr std::int64_t k_for_ever = std::numeric_limits<std::int64_t>::max();

 private:
  enum Turn : std::uint32_t { tracer_stops, all_stand, overdue, over };

  static void trace(void* self) noexcept;
  void attach_all();
  bool attach_new();
  void wait_for_stops() noexcept;
  void take_reports_of_ends() const noexcept;
  void hold() noexcept;

  const ProcessFolder& folder_;
  std::vector<TracedThread> threads_;
  std::unordered_set<pid_t> known_;  // threads that are attached to
  std::size_t newest_ = 0;           // index of the first thread that was attached to last
  int failure_ = 0;                  // errno
  bool is_attached_ = false;
  std::int64_t longest_ns_ = k_for_ever;
  std::int64_t stopped_since_ns_ = 0;  // 0: no thread was requested to stop
  std::uint64_t stopped_ns_ = 0;
  OwnThread tracer_;
  WaitedWord turn_;
  std::atomic<bool> is_seizing_{false};  // the tracer asks the kernel to attach to a thread
};

}  // namespace jitunwind

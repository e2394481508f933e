#include <elf.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/targets/threads/traced_threads_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

constexpr std::int64_t k_longest_wait_ns = 1'000'000'000;
constexpr std::int64_t k_longest_stop_ns = 5 * k_longest_wait_ns;  // of a process that makes threads faster than that
constexpr std::int64_t k_longest_seize_ns = 50'000'000;
constexpr int k_stop_event = 128;  // PTRACE_EVENT_STOP

void* number(std::uintptr_t value) noexcept { return reinterpret_cast<void*>(value); }

/// Whether the thread has stopped, or is gone. waitid() leaves both reports in place (WNOWAIT). The report of an end
/// belongs to the parent, which may be this process; the report of a stop has the signal that the thread gets when its
/// tracer ends.
bool has_stopped(TracedThread& thread) noexcept {
  siginfo_t info{};
  const int how = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
  const bool can_wait = ::syscall(SYS_waitid, P_PID, thread.id, &info, how, nullptr) == 0;
  if (can_wait && info.si_pid == 0) return false;
  if (!can_wait || (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)) return thread.is_gone = true;
  thread.is_stopped = true;
  // A stop of the thread's own precedes the requested one if a signal is about to be delivered. The signal is passed on
  // when the thread is released.
  const int event = info.si_status >> 8, signal = info.si_status & 0x7f;
  if (event != k_stop_event) thread.signal = signal;
  return true;
}

/// Precondition: the thread has stopped.
void take_registers(TracedThread& thread) {
  std::array<std::byte, 1024> block;
  iovec into{block.data(), block.size()};
  if (::ptrace(PTRACE_GETREGSET, thread.id, number(NT_PRSTATUS), &into) == 0)
    thread.registers.assign(block.data(), block.data() + into.iov_len);
}

}  // namespace

/// False: every thread is attached to already. A thread that ends meanwhile is no failure. No thread is stopped before
/// all are attached to and have names: it would be stopped for that long.
bool TracedThreads::attach_new() {
  newest_ = threads_.size();
  bool is_whole = true;
  for (const pid_t thread : folder_.threads(&is_whole)) {
    if (known_.contains(thread)) continue;
    is_seizing_.store(true, std::memory_order_relaxed);
    const bool is_attached = ::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0;
    is_seizing_.store(false, std::memory_order_relaxed);
    if (is_attached) {
      known_.insert(thread);
      threads_.push_back({thread, folder_.name_of_thread(thread)});
    } else if (const int refused = errno; thread == folder_.process() || !folder_.has_ended(thread)) {
      failure_ = refused;
      return false;
    } else {
      // The kernel may have counted the thread for one that is not in the list. The first thread of a process stays in
      // it.
      const auto status = folder_.status();
      is_whole = is_whole && status && status->group == thread;
    }
  }
  const auto added = std::span(threads_).subspan(newest_);
  if (stopped_since_ns_ == 0 && !added.empty()) stopped_since_ns_ = nanoseconds_of(CLOCK_MONOTONIC);
  for (const TracedThread& thread : added) (void)::ptrace(PTRACE_INTERRUPT, thread.id, nullptr, nullptr);
  return !added.empty() || !is_whole;
}

/// Waits for the new threads: the others have had their time.
void TracedThreads::wait_for_stops() noexcept {
  constexpr std::int64_t k_short_wait_ns = 200'000;
  const std::int64_t begin = nanoseconds_of(CLOCK_MONOTONIC);
  long pause_ns = 10'000;
  for (;;) {
    bool is_waited_for = false;
    for (TracedThread& thread : threads_)
      if (!thread.is_stopped && !thread.is_gone && !has_stopped(thread))
        is_waited_for = is_waited_for || &thread >= threads_.data() + newest_;
    const std::int64_t waited = nanoseconds_of(CLOCK_MONOTONIC) - begin;
    if (!is_waited_for || waited > k_longest_wait_ns) return;
    // A running thread stops in microseconds, and the shortest sleep takes many more. A thread that waits for a
    // processor gets this one.
    if (waited < k_short_wait_ns) {
      ::sched_yield();
      continue;
    }
    sleep_for_nanoseconds(pause_ns);
    pause_ns = std::min(2 * pause_ns, 1'000'000l);
  }
}

void TracedThreads::attach_all() {
  const std::int64_t begin = nanoseconds_of(CLOCK_MONOTONIC);
  while (attach_new() && nanoseconds_of(CLOCK_MONOTONIC) - begin < k_longest_stop_ns) wait_for_stops();
  for (TracedThread& thread : threads_) {
    // The end of a first thread that ended before others is not reported.
    if (!thread.is_stopped) thread.is_gone = thread.is_gone || folder_.has_ended(thread.id);
    if (thread.is_stopped) take_registers(thread);
  }
}

void TracedThreads::trace(void* self) noexcept {
  auto& traced = *static_cast<TracedThreads*>(self);
  try {
    traced.attach_all();
  } catch (const std::bad_alloc&) {
    traced.failure_ = ENOMEM;
  }
  (void)traced.turn_.exchange(all_stand);
  if (traced.failure_ == 0) traced.hold();
  // Stopped threads continue at once, and the others at the end of this thread.
  for (const TracedThread& thread : traced.threads_)
    (void)::ptrace(PTRACE_DETACH, thread.id, nullptr, number(static_cast<std::uintptr_t>(thread.signal)));
  if (traced.stopped_since_ns_ != 0)
    traced.stopped_ns_ = static_cast<std::uint64_t>(nanoseconds_of(CLOCK_MONOTONIC) - traced.stopped_since_ns_);
}

void TracedThreads::hold() noexcept {
  if (longest_ns_ == k_for_ever) return turn_.wait_while(all_stand);
  const timespec until = monotonic_time_in(longest_ns_);
  turn_.wait_while(all_stand, &until);
  (void)turn_.replace(all_stand, overdue);
}

int TracedThreads::stop_all(std::int64_t longest_ns) {
  longest_ns_ = longest_ns;
  stopped_since_ns_ = 0;
  failure_ = 0;
  threads_.clear();
  known_.clear();
  (void)turn_.exchange(tracer_stops);
  if (!tracer_.start(trace, this)) throw std::bad_alloc();
  is_attached_ = true;
  while (turn_.load() == tracer_stops) {
    const timespec until = monotonic_time_in(k_longest_seize_ns);
    turn_.wait_while(tracer_stops, &until);
    if (is_seizing_.load(std::memory_order_relaxed)) take_reports_of_ends();
  }
  if (failure_ == 0) return 0;
  let_go();
  if (failure_ == ENOMEM) throw std::bad_alloc();
  return failure_;
}

/// A thread in execve(2) waits until the ends of the others are reported to their tracer, and PTRACE_SEIZE waits for
/// that execve(2): both take cred_guard_mutex (fs/exec.c, kernel/ptrace.c). The tracer alone would wait for ever, but
/// each thread of its process may take the reports. That of a first thread belongs to the parent.
void TracedThreads::take_reports_of_ends() const noexcept try {
  const auto status = folder_.status();
  for (const pid_t thread : folder_.threads())
    if (status && thread != status->group)
      (void)::syscall(SYS_waitid, P_PID, thread, nullptr, WEXITED | WNOHANG | __WALL, nullptr);
} catch (const std::bad_alloc&) {  // it is asked again
}

void TracedThreads::take_stopped() {
  threads_.clear();
  for (const pid_t thread : folder_.threads()) {
    threads_.push_back({thread, folder_.name_of_thread(thread), 0, true});
    take_registers(threads_.back());
  }
}

bool TracedThreads::let_go() noexcept {
  if (!is_attached_) return true;
  const ErrnoKeeper keeper;
  is_attached_ = false;
  const bool was_held = turn_.exchange(over) != overdue;
  tracer_.join();
  return was_held;
}

Result<RegisterFile> TracedThread::registers_of(const Arch& arch) const noexcept {
  if (registers.empty()) return Error{ErrorCode::io, static_cast<Addr>(id), "registers of a thread"};
  // The kernel gives the registers of the mode of the present code, and programs can change that.
  const Arch& host = *host_arch();
  if (arch.word_size < host.word_size && registers_from_prstatus(registers, host))
    return Error{ErrorCode::truncated, static_cast<Addr>(id), "registers of another CPU"};
  return registers_from_prstatus(registers, arch);
}

}  // namespace jitunwind

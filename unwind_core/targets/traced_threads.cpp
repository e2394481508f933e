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
#include "jitunwind/unwind_core/targets/traced_threads_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

constexpr std::int64_t k_longest_wait_ns = 1'000'000'000;
constexpr int k_stop_event = 128;  // PTRACE_EVENT_STOP

std::int64_t now_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void* number(std::uintptr_t value) noexcept { return reinterpret_cast<void*>(value); }

/// Of a child, or a thread that is traced: it will not stop any more. Of the latter the kernel tells stops, too, which
/// nobody has asked for.
bool has_ended(pid_t thread) noexcept {
  siginfo_t info{};
  const int how = WEXITED | WNOHANG | WNOWAIT | __WALL;
  return ::syscall(SYS_waitid, P_PID, thread, &info, how, nullptr) == 0 && info.si_pid != 0 &&
         (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

/// Whether the thread has stopped, or is gone. Never takes the status of one that has ended, which is its parent's to
/// have, as this process may be.
bool has_stopped(TracedThread& thread) noexcept {
  siginfo_t info{};
  const long waited = ::syscall(SYS_waitid, P_PID, thread.id, &info, WSTOPPED | WNOHANG | __WALL, nullptr);
  if (waited != 0) return thread.is_gone = true;  // who does not wait is never interrupted by a signal
  if (info.si_pid == 0) return thread.is_gone = has_ended(thread.id);
  thread.is_stopped = true;
  // A stop of its own comes before ours where a signal is about to be delivered: it is handed on when it is let go.
  const int event = info.si_status >> 8, signal = info.si_status & 0x7f;
  if (event != k_stop_event) thread.signal = signal;
  return true;
}

/// A thread that has ended while it was traced is its tracer's to wait for, before its process can end for its parent.
/// Where this process is that parent, the status of the process is left for it.
void bury(pid_t thread) noexcept try {
  const auto status = ProcessFolder(thread).status();
  if (!status || (thread == status->group && status->parent == ::getpid())) return;
  siginfo_t info{};
  (void)::syscall(SYS_waitid, P_PID, thread, &info, WEXITED | WNOHANG | __WALL, nullptr);
} catch (const std::bad_alloc&) {
}

}  // namespace

bool TracedThreads::is_known(pid_t thread) const noexcept {
  return std::ranges::any_of(threads_, [&](const TracedThread& known) { return known.id == thread; });
}

/// False: there was none that is not attached to. A thread that ends meanwhile is no failure. None is stopped before
/// all are attached to and named: it would stand still for that long.
bool TracedThreads::attach_new(int& failure) {
  const std::size_t known = threads_.size();
  bool is_whole = true;
  for (const pid_t thread : folder_.threads(&is_whole)) {
    if (is_known(thread)) continue;
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0) {
      threads_.push_back({thread, folder_.name_of_thread(thread)});
    } else if (const int refused = errno; thread == folder_.process() || !folder_.has_ended(thread)) {
      failure = refused;
      break;
    } else {
      // It may have been counted for one that is not in the list. The first of a process stays in it.
      const auto status = folder_.status();
      is_whole = is_whole && status && status->group == thread;
    }
  }
  if (stopped_since_ns_ == 0 && threads_.size() != known) stopped_since_ns_ = now_ns();
  for (const TracedThread& thread : std::span(threads_).subspan(known))
    (void)::ptrace(PTRACE_INTERRUPT, thread.id, nullptr, nullptr);
  return failure == 0 && (threads_.size() != known || !is_whole);
}

void TracedThreads::wait_for_stops() noexcept {
  constexpr std::int64_t k_short_wait_ns = 200'000;
  const std::int64_t begin = now_ns();
  long pause_ns = 10'000;
  for (;;) {
    std::size_t left = 0;
    for (TracedThread& thread : threads_)
      if (!thread.is_stopped && !thread.is_gone && !has_stopped(thread)) ++left;
    const std::int64_t waited = now_ns() - begin;
    if (left == 0 || waited > k_longest_wait_ns) break;
    // What has a processor stops in microseconds, and the shortest sleep takes many more. What waits for one gets this.
    if (waited < k_short_wait_ns) {
      ::sched_yield();
      continue;
    }
    sleep_for_nanoseconds(pause_ns);
    pause_ns = std::min(2 * pause_ns, 1'000'000l);
  }
}

int TracedThreads::stop_all() {
  constexpr int k_most_rounds = 1000;  // of a process that makes threads faster than they are stopped
  is_attached_ = true;
  stopped_since_ns_ = 0;
  threads_.clear();
  int failure = 0;
  for (int round = 0; round < k_most_rounds && attach_new(failure); ++round) wait_for_stops();
  if (failure != 0) let_go();
  return failure;
}

void TracedThreads::take_stopped() {
  threads_.clear();
  for (const pid_t thread : folder_.threads()) threads_.push_back({thread, folder_.name_of_thread(thread), 0, true});
}

void TracedThreads::let_go() noexcept {
  const ErrnoKeeper keeper;
  if (!is_attached_) return;
  is_attached_ = false;
  // Only a thread that stands still can be let go: one that did not stop in time gets as long again.
  wait_for_stops();
  for (TracedThread& thread : threads_) {
    const auto signal = number(static_cast<std::uintptr_t>(thread.signal));
    if (::ptrace(PTRACE_DETACH, thread.id, nullptr, signal) != 0 && errno == ESRCH) bury(thread.id);
    thread.is_stopped = false;
  }
  if (stopped_since_ns_ != 0) stopped_ns_ = static_cast<std::uint64_t>(now_ns() - stopped_since_ns_);
}

Result<RegisterFile> TracedThreads::registers(pid_t thread, const Arch& arch) noexcept {
  const ErrnoKeeper keeper;
  std::array<std::byte, 1024> block;
  iovec into{block.data(), block.size()};
  if (::ptrace(PTRACE_GETREGSET, thread, number(NT_PRSTATUS), &into) != 0)
    return Error{ErrorCode::io, static_cast<Addr>(thread), "registers of a thread"};
  const auto registers = std::span<const std::byte>(block).first(into.iov_len);
  // The kernel gives those of the code that it stands in, which programs can change.
  const Arch& host = *host_arch();
  if (arch.word_size < host.word_size && registers_from_prstatus(registers, host))
    return Error{ErrorCode::truncated, static_cast<Addr>(thread), "registers of another CPU"};
  return registers_from_prstatus(registers, arch);
}

}  // namespace jitunwind

// Walks of other threads of this process: the thread is interrupted and walks its own stack.
//
//   const jitunwind::ThreadWalk walk = jitunwind::walk_thread(tid);
//   for (const jitunwind::ThreadFrame& frame : walk) std::puts(frame.name().c_str());
//   std::puts(walk.why().c_str());
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/walk/cursor.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A frame of another thread, which has gone on since. Its name is looked up when it is asked for, as for any address
/// of this process.
class ThreadFrame {
 public:
  constexpr ThreadFrame() noexcept = default;
  ThreadFrame(CodeAddress address, Addr sp, RowOrigin origin) noexcept : address_(address), sp_(sp), origin_(origin) {}

  Addr pc() const noexcept { return address_.value(); }
  Addr sp() const noexcept { return sp_; }
  CodeAddress address() const noexcept { return address_; }
  RowOrigin origin() const noexcept { return origin_; }
  bool is_guess() const noexcept { return jitunwind::is_guess(origin_); }
  /// Returns the name as Frame::name() does. Allocates: not signal-safe.
  std::string name() const;
  /// Returns the name as Frame::raw_name() does. Signal-safe.
  Result<ProcedureName> raw_name(std::span<char> into) const noexcept;

 private:
  CodeAddress address_{};
  Addr sp_ = 0;
  RowOrigin origin_ = RowOrigin::none;
};

/// The frames of another thread at one moment, innermost first. The first frame is the interrupted one.
class ThreadWalk {
 public:
  static constexpr std::size_t k_most_frames = 512;

  /// Whether the thread has answered, or why not.
  enum class Answer : std::uint8_t {
    given,
    no_thread,  ///< this process has no thread of that number, or has none any more
    blocked,    ///< it blocks all signals, or this one
    none,       ///< it does not run: stopped by a debugger, or in an uninterruptible wait of the kernel's
    no_signal,  ///< all real-time signals are used for something else, or too many wait to be delivered
    busy,       ///< as many threads as there is room for are being asked, or there is no memory for a question
  };

  Answer answer() const noexcept { return answer_; }
  const ThreadFrame* begin() const noexcept { return frames_.data(); }
  const ThreadFrame* end() const noexcept { return frames_.data() + size_; }
  std::size_t size() const noexcept { return size_; }

  /// Why the answered walk ended: `limit` if there are more than k_most_frames frames, `none` if there is no answer.
  StopReason stop_reason() const noexcept { return stop_; }
  const Error& stop_error() const noexcept { return error_; }
  /// "complete", or one sentence. Allocates.
  std::string why() const;

 private:
  friend class ThreadQuestion;
  std::array<ThreadFrame, k_most_frames> frames_;  // 16 KiB
  std::size_t size_ = 0;
  Answer answer_ = Answer::none;
  StopReason stop_ = StopReason::none;
  Error error_{};
};

/// Asks a thread by a real-time signal. The first question chooses a signal without a handler and installs one, with
/// SA_RESTART and SA_ONSTACK. The thread walks its own stack in some microseconds and goes on; system calls that
/// signal(7) lists as never restarted end with EINTR. The caller waits for at most `wait`, and for up to as long again
/// if the thread has begun to answer. Takes no lock and allocates nothing; thread-safe; signal-safe, with 40 KiB of
/// stack. Up to 16 questions are possible at a time. The calling thread may ask itself.
ThreadWalk walk_thread(pid_t thread, std::chrono::nanoseconds wait = std::chrono::milliseconds(200)) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

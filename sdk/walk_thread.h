// The stack of another thread of this process, which answers by itself, interrupted for as long as its walk takes.
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

/// What is known of a frame of another thread. The thread has gone on: names are looked for when they are asked for, as
/// of any address of this process.
class ThreadFrame {
 public:
  constexpr ThreadFrame() noexcept = default;
  ThreadFrame(CodeAddress address, Addr sp, RowOrigin origin) noexcept : address_(address), sp_(sp), origin_(origin) {}

  Addr pc() const noexcept { return address_.value(); }
  Addr sp() const noexcept { return sp_; }
  CodeAddress address() const noexcept { return address_; }
  RowOrigin origin() const noexcept { return origin_; }
  bool is_guess() const noexcept { return jitunwind::is_guess(origin_); }
  /// As Frame::name(). Allocates: not signal-safe.
  std::string name() const;
  /// As Frame::raw_name(). Signal-safe.
  Result<ProcedureName> raw_name(std::span<char> into) const noexcept;

 private:
  CodeAddress address_{};
  Addr sp_ = 0;
  RowOrigin origin_ = RowOrigin::none;
};

/// Frames of one moment, innermost first: the one that was interrupted.
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
    busy,       ///< as many threads as there is room for are being asked
  };

  Answer answer() const noexcept { return answer_; }
  const ThreadFrame* begin() const noexcept { return frames_.data(); }
  const ThreadFrame* end() const noexcept { return frames_.data() + size_; }
  std::size_t size() const noexcept { return size_; }

  /// Of an answer: limit where there are more frames than k_most_frames. none where there is no answer.
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

/// Asks a thread by a real-time signal that has no handler yet, and gets one at the first question: SA_RESTART, on the
/// thread's signal stack where it has one. The thread walks its own stack, some microseconds, and goes on; system calls
/// that signal(7) lists as never restarted end with EINTR. Waits for at most `wait`, and where the thread has begun to
/// answer for up to as long again. Takes no lock and allocates nothing; thread-safe; signal-safe, with 40 KiB of stack.
/// Of 16 questions at a time each has its own room. The calling thread may ask itself.
ThreadWalk walk_thread(pid_t thread, std::chrono::nanoseconds wait = std::chrono::milliseconds(200)) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

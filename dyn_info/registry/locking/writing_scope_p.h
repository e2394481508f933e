// Recognises signal handlers that interrupted a writer of their own thread.
#pragma once

#include <atomic>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

extern constinit thread_local std::atomic<bool> thread_is_writing;

/// Keeps signal handlers of this thread out of the writers.
class WritingScope {
 public:
  WritingScope() noexcept { set(true); }
  ~WritingScope() { set(false); }
  WritingScope(const WritingScope&) = delete;
  WritingScope& operator=(const WritingScope&) = delete;

  static bool active() noexcept { return thread_is_writing.load(std::memory_order_relaxed); }
  static void set(bool on) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_is_writing.store(on, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

inline Error refused_to_interrupter() noexcept {
  return {ErrorCode::in_signal_handler, 0, "a writer was interrupted by itself"};
}

}  // namespace jitunwind

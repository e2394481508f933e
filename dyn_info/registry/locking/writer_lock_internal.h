// The lock among writers. It is not a pthread mutex, since it must be plain data after fork and in a process that
// exits, and since it counts the threads that do without it.
#pragma once

#include <atomic>
#include <cstdint>

namespace jitunwind {

/// The state is one word. Bit 0 says that the lock is taken, and bit 1 that somebody waits for it. The rest is the
/// number of bypasses, threads that go on while another has the lock. Since both are one word, a thread that releases
/// the lock either sees a bypass or is seen by it.
class alignas(64) WriterLock {
 public:
  constexpr WriterLock() noexcept = default;

  bool try_lock() noexcept { return (state_.fetch_or(k_taken, std::memory_order_seq_cst) & k_taken) == 0; }
  void lock() noexcept {
    if (!try_lock()) wait();
  }
  /// Returns true if there is a bypass. It orders what was done before it against what the caller looks at next.
  bool unlock() noexcept {
    const std::uint32_t old = state_.fetch_sub(k_taken, std::memory_order_seq_cst);
    if ((old & k_waited_for) != 0) wake();
    return old >= k_bypass;
  }

  void begin_bypass() noexcept { state_.fetch_add(k_bypass, std::memory_order_seq_cst); }
  void end_bypass() noexcept { state_.fetch_sub(k_bypass, std::memory_order_seq_cst); }
  /// Only the holder calls it. It orders memory as unlock() does.
  bool has_bypass() noexcept { return state_.fetch_add(0, std::memory_order_seq_cst) >= k_bypass; }
  /// The holder calls it when no other thread exists.
  void forget_others() noexcept { state_.store(k_taken, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t k_taken = 1;
  static constexpr std::uint32_t k_waited_for = 2;
  static constexpr std::uint32_t k_bypass = 4;

  [[gnu::visibility("default")]] void wait() noexcept;
  [[gnu::visibility("default")]] void wake() noexcept;

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace jitunwind

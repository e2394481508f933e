// The last walk of a thread: walks that follow each other mostly have their outer frames in common.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind_core/address.h"
#include "unwind_core/code_changes.h"

namespace jitunwind {

/// A frame as a walk of addresses keeps it, and where its frame pointer was read.
struct PastFrame {
  Addr sp;
  Addr pc;  ///< return address
  Addr fp;
  Addr fp_at;             ///< where its caller's frame pointer is: on the stack, or `fp` itself where it is the same
  std::uint64_t changes;  ///< CodeChanges::stamp() of its code
};

/// Written and read by its thread alone, and by handlers that interrupt it: those find it busy. Constant-initialised.
class WalkMemory {
 public:
  static constexpr std::size_t k_capacity = 500;
  /// Shorter walks are not worth it.
  static constexpr std::size_t k_few = 16;

  /// The calling thread has one that holds a walk.
  static bool has_walk() noexcept;
  /// The calling thread's; null: there are as many already as are kept room for, or it is in use by what this handler
  /// interrupted. Signal-safe. Every one that is given must be released.
  static WalkMemory* acquire() noexcept;
  void release() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_.store(false, std::memory_order_relaxed);
  }

  /// Number of the frame at this code, whose callers have lower numbers. `at`: CodeAddress::lookup().
  std::size_t find(Addr at, Addr sp, Addr fp) const noexcept;
  // Of CodeChanges, when it was recorded.
  std::uint64_t everywhere() const noexcept { return everywhere_; }
  std::uint64_t first_counts() const noexcept { return first_counts_; }
  /// The stamps of all frames are what they were; false: not, or each has to be looked at. `first_counts`: of now.
  bool nothing_changed(const CodeChanges& changes, std::uint64_t first_counts) const noexcept {
    bool same = first_counts == first_counts_ && counted_ <= counts_.size();
    for (std::size_t i = 0; same && i < counted_; ++i) same = changes.one_holds(counts_[i]);
    return same;
  }
  /// The first `count` frames hold at these numbers.
  void confirm(std::size_t count, std::uint64_t everywhere, std::uint64_t first_counts) noexcept;
  const PastFrame& operator[](std::size_t number) const noexcept { return frames_[number]; }
  static constexpr std::size_t k_none = ~std::size_t{0};

  /// Whether a walk that found `known` of its `all` frames here should be recorded in its place.
  bool wants(std::size_t known, std::size_t all) noexcept;
  /// For the recording walk: fills frames from the highest number down, then confirms how many of the low ones hold.
  std::span<PastFrame> begin_recording() noexcept;

 private:
  std::atomic<bool> busy_{false};
  std::atomic<bool> owned_{false};
  unsigned walks_to_skip_ = 0;
  unsigned last_skip_ = 0;
  bool was_useful_ = true;
  std::size_t count_ = 0;
  std::uint64_t everywhere_ = 0;
  std::uint64_t first_counts_ = 0;
  std::size_t counted_ = 0;
  std::array<std::uint64_t, 128> counts_{};  ///< stamps of the frames that count, each at least once
  std::array<PastFrame, k_capacity> frames_{};

  friend class WalkMemories;
};

extern constinit thread_local WalkMemory* walk_memory_of_thread;

inline bool WalkMemory::has_walk() noexcept { return walk_memory_of_thread && walk_memory_of_thread->count_ != 0; }

}  // namespace jitunwind

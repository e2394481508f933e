#include "sdk/walk_memory_p.h"

#include <pthread.h>

#include <algorithm>

namespace jitunwind {

constinit thread_local WalkMemory* walk_memory_of_thread = nullptr;

/// Room for so many threads at a time; the others walk without. A thread gives its room back when it ends, by a key of
/// thread-specific data: one of the first 32, for which the C library keeps room in the thread itself and allocates
/// nothing (glibc, nptl/pthread_setspecific.c).
class WalkMemories {
 public:
  static WalkMemory* take() noexcept {
    if (!has_key_.load(std::memory_order_acquire)) return nullptr;
    for (WalkMemory& memory : all_) {
      if (memory.owned_.load(std::memory_order_relaxed) || memory.owned_.exchange(true, std::memory_order_acquire))
        continue;
      memory.count_ = 0;
      pthread_setspecific(key_, &memory);
      return walk_memory_of_thread = &memory;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t k_threads = 64;
  static constexpr pthread_key_t k_keys_in_thread = 32;

  static void give_back(void* memory) {
    walk_memory_of_thread = nullptr;
    static_cast<WalkMemory*>(memory)->owned_.store(false, std::memory_order_release);
  }
  [[gnu::constructor]] static void make_key() {
    if (pthread_key_create(&key_, &give_back) != 0) return;
    if (key_ < k_keys_in_thread)
      has_key_.store(true, std::memory_order_release);
    else
      pthread_key_delete(key_);
  }
  /// Threads that outlive this library must not come back to it.
  [[gnu::destructor]] static void delete_key() {
    if (has_key_.exchange(false)) pthread_key_delete(key_);
  }

  static constinit std::array<WalkMemory, k_threads> all_;
  static constinit std::atomic<bool> has_key_;
  static constinit pthread_key_t key_;
};

constinit std::array<WalkMemory, WalkMemories::k_threads> WalkMemories::all_{};
constinit std::atomic<bool> WalkMemories::has_key_{false};
constinit pthread_key_t WalkMemories::key_ = 0;

WalkMemory* WalkMemory::acquire() noexcept {
  WalkMemory* const memory = walk_memory_of_thread ? walk_memory_of_thread : WalkMemories::take();
  // A handler that comes between the two is done before this goes on.
  if (!memory || memory->busy_.load(std::memory_order_relaxed)) return nullptr;
  memory->busy_.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return memory;
}

std::size_t WalkMemory::find(Addr at, Addr sp, Addr fp) const noexcept {
  const std::span<const PastFrame> frames(frames_.data(), count_);
  const auto found = std::lower_bound(frames.begin(), frames.end(), sp,
                                      [](const PastFrame& frame, Addr wanted) { return frame.sp > wanted; });
  if (found == frames.end() || found->sp != sp || found->fp != fp) return k_none;
  if (CodeAddress::returned_to(found->pc).lookup() != at) return k_none;
  return static_cast<std::size_t>(found - frames.begin());
}

/// Recording costs as much as a walk. Where it does not help, it is done ever more rarely.
bool WalkMemory::wants(std::size_t known, std::size_t all) noexcept {
  constexpr unsigned k_most_skipped = 255;
  if (known > 0) was_useful_ = true;
  if (all < k_few || known >= std::min(all, k_capacity) / 2) return false;
  if (walks_to_skip_ > 0) {
    --walks_to_skip_;
    return false;
  }
  last_skip_ = was_useful_ ? 0 : std::min(2 * last_skip_ + 1, k_most_skipped);
  walks_to_skip_ = last_skip_;
  was_useful_ = false;
  return true;
}

std::span<PastFrame> WalkMemory::begin_recording() noexcept {
  count_ = 0;
  return frames_;
}

void WalkMemory::confirm(std::size_t count, std::uint64_t everywhere, std::uint64_t first_counts) noexcept {
  constexpr std::size_t k_look_back = 8;  // recursion repeats what is near
  count_ = count;
  everywhere_ = everywhere;
  first_counts_ = first_counts;
  counted_ = 0;
  for (const PastFrame& frame : std::span(frames_).first(count)) {
    if (CodeChanges::counts_nothing(frame.changes)) continue;
    const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(counted_);
    if (std::find(end - static_cast<std::ptrdiff_t>(std::min(counted_, k_look_back)), end, frame.changes) != end)
      continue;
    if (counted_ == counts_.size() || CodeChanges::counts_several(frame.changes)) {
      counted_ = counts_.size() + 1;
      return;
    }
    counts_[counted_++] = frame.changes;
  }
}

}  // namespace jitunwind

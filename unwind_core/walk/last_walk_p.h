// The last walk of a thread: walks that follow each other mostly have their outer frames in common.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/kept/code_changes_internal.h"
#include "jitunwind/unwind_core/walk/caller_chain_p.h"

namespace jitunwind {

/// A frame as a walk of addresses keeps it, and where its frame pointer was read.
struct PastFrame {
  Addr sp;
  Addr pc;  ///< return address
  Addr fp;
  Addr fp_at;              ///< where its caller's frame pointer is: on the stack, or `fp` itself where it is the same
  std::uint64_t changes;   ///< CodeChanges::stamp() of its code
  bool fp_decides;         ///< a rule on the way uses its frame pointer before another one is read
  std::uint32_t pc_below;  ///< bytes from the return address to its caller's SP, where calls do not push it

  bool saves_fp() const noexcept { return fp_at != reinterpret_cast<std::uintptr_t>(&fp); }
};

/// The policy says when a walk is recorded, and when a walk does not even look at what is recorded. It counts costs and
/// gains in steps.
class RecordingPolicy {
 public:
  /// After a walk that found `known` of its frames, the outer ones, among the `recorded` ones: whether it should be
  /// recorded in their place. Recording that did not pay for itself is done ever more rarely.
  bool wants(std::size_t known, std::span<void* const> all, std::size_t recorded) noexcept;
  /// True: walks differ so much that looking costs more than it saves. It counts this walk as one that did not look.
  bool skips_look() noexcept {
    if (looks_to_skip_ == 0) return false;
    --looks_to_skip_;
    return true;
  }
  /// Code of a recorded frame has changed.
  void set_stale() noexcept { is_stale_ = true; }

 private:
  static constexpr std::ptrdiff_t k_cost_of_looking = 8;
  static constexpr std::size_t k_cost_of_recording = 4;  ///< a frame

  /// The part of a walk that was not known.
  struct Unknown {
    std::size_t frames = 0;
    void* middle = nullptr;
    bool operator==(const Unknown&) const = default;
  };

  unsigned walks_to_skip_ = 0;
  unsigned last_skip_ = 0;
  unsigned looks_to_skip_ = 0;
  unsigned tried_ = 0;
  unsigned repetitions_ = 0;
  bool is_stale_ = false;
  std::ptrdiff_t saved_ = 0;  ///< since it was recorded
  std::ptrdiff_t saved_in_trial_ = 0;
  Unknown last_unknown_;
};

/// Written and read by its thread alone, and by handlers that interrupt it: those find it busy. Constant-initialised. A
/// walk of some seventy frames needs one page of it: a page fault costs as much as a walk.
class alignas(4096) LastWalk {
 public:
  static constexpr std::size_t k_capacity = 1000;
  /// Shorter walks are not worth it.
  static constexpr std::size_t k_few = 8;
  /// A thread that has walked less often may not walk again.
  static constexpr unsigned k_walks_without = 2;

  /// The calling thread has one that holds a walk.
  static bool has_walk() noexcept;
  /// The calling thread's; null: there are as many already as are kept room for, or it is in use by what this handler
  /// interrupted. Signal-safe. Every one that is given must be released.
  static LastWalk* acquire() noexcept;
  void release() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_.store(false, std::memory_order_relaxed);
  }

  /// Number of the frame at this code; its callers have lower numbers. `at`: CodeAddress::lookup(). The frame may have
  /// had another frame pointer, if that decides nothing: code without frame pointers keeps there what it likes.
  std::size_t find(Addr at, Addr sp, Addr fp) const noexcept;
  bool has_frame_at(Addr sp) const noexcept {
    const std::size_t number = numbers()[place_of(sp)];
    return number < count_ && frames_[number].sp == sp;
  }
  // Numbers of CodeChanges at the time of the recording.
  std::uint64_t everywhere() const noexcept { return everywhere_; }
  std::uint64_t first_counts() const noexcept { return first_counts_; }
  /// True: the stamps of all frames are what they were. False: one is not, or each has to be looked at. `first_counts`
  /// is that of now.
  bool nothing_changed(const CodeChanges& changes, std::uint64_t first_counts) const noexcept {
    bool same = first_counts == first_counts_ && counted_ <= counts_.size();
    for (std::size_t i = 0; same && i < counted_; ++i) same = changes.one_holds(counts_[i]);
    return same;
  }
  /// The first `count` frames hold at these numbers.
  void confirm(std::size_t count, std::uint64_t everywhere, std::uint64_t first_counts) noexcept;
  const PastFrame& operator[](std::size_t number) const noexcept { return frames_[number]; }
  static constexpr std::size_t k_none = ~std::size_t{0};

  /// Whether a walk that found `known` of its frames here, the outer ones, should be recorded in its place.
  bool wants(std::size_t known, std::span<void* const> all) noexcept;
  /// Code of a frame has changed since.
  void set_stale() noexcept { policy_.set_stale(); }
  /// A walk records frames from the highest number down. Then confirm() says how many of the low ones hold.
  void begin_recording() noexcept { count_ = 0; }
  /// Does nothing where `number` is too high.
  void record(std::size_t number, const PastFrame& frame) noexcept;
  /// Adds how the frame's caller is found. `fp_at`: where the caller's frame pointer is saved; none: it is the same.
  /// `pc_below`: of PastFrame.
  void record_rule(std::size_t number, bool base_is_fp, std::optional<Addr> fp_at, std::uint32_t pc_below) noexcept;

 private:
  static constexpr std::size_t k_few_places = 256, k_places = 2048;
  static constexpr std::size_t k_most_in_few_places = 64;
  /// Stacks are aligned to 16 bytes where functions are called; neighbours on one get different places.
  std::size_t place_of(Addr sp) const noexcept { return static_cast<std::size_t>(sp / 16) % numbers().size(); }
  bool has_few_places() const noexcept { return count_ <= k_most_in_few_places; }
  std::span<const std::uint16_t> numbers() const noexcept {
    return has_few_places() ? std::span<const std::uint16_t>(few_numbers_) : numbers_;
  }

  std::atomic<bool> busy_{false};
  std::atomic<bool> owned_{false};
  RecordingPolicy policy_;
  std::size_t count_ = 0;
  std::uint64_t everywhere_ = 0;
  std::uint64_t first_counts_ = 0;
  std::size_t counted_ = 0;
  /// Numbers of frames, each at place_of() its SP. One of two frames at the same place is found.
  std::array<std::uint16_t, k_few_places> few_numbers_{};
  std::array<PastFrame, k_capacity> frames_{};
  std::array<std::uint16_t, k_places> numbers_{};
  std::array<std::uint64_t, 512> counts_{};  ///< stamps of the frames that count, each at least once

  friend class LastWalks;
};

extern constinit thread_local LastWalk* last_walk_of_thread;

inline bool LastWalk::has_walk() noexcept { return last_walk_of_thread && last_walk_of_thread->count_ != 0; }

/// One walk's hold on the last walk of its thread, from its beginning on. All that walks of addresses know of it.
class LastWalkLease {
 public:
  /// Empty where the walk can only be short, or the thread has walked too rarely.
  explicit LastWalkLease(const CallerChain& chain) noexcept : first_counts_(chain.changes().first_counts()) {
    if (chain.room().size() >= LastWalk::k_few && LastWalk::has_walk()) (void)take(chain);
  }
  ~LastWalkLease() {
    if (walk_) walk_->release();
  }
  LastWalkLease(const LastWalkLease&) = delete;
  LastWalkLease& operator=(const LastWalkLease&) = delete;

  /// Null: empty.
  const LastWalk* get() const noexcept { return walk_; }
  /// Asks for the thread's last walk once: a refusal counts for all of this walk. Null: refused.
  const LastWalk* take(const CallerChain& chain) noexcept {
    if (!asked_ && chain.stack().is_known()) {
      asked_ = true;
      walk_ = LastWalk::acquire();
    }
    return walk_;
  }

  // Preconditions: not empty.

  /// A chain that stands at a frame of the last walk goes on to its callers, as long as the stack holds what it held
  /// then. The caller is the same if the frame, its rule and the words that the rule reads are the same. No step waits
  /// for the one before.
  void follow(CallerChain& chain) noexcept;
  /// Records the walk in the place of the last one, where that pays. Precondition: the chain is at its end.
  void record_if_wanted(CallerChain& chain, const WalkStart& start) noexcept;

 private:
  template <bool k_calls_push>
  void follow_from(std::size_t number, CallerChain& chain) noexcept;
  void record(CallerChain& chain, const WalkStart& start) noexcept;

  LastWalk* walk_ = nullptr;
  bool asked_ = false;
  const std::uint64_t first_counts_;  ///< CodeChanges::first_counts(), when the walk began
  std::size_t followed_ = 0;          ///< frames
};

}  // namespace jitunwind

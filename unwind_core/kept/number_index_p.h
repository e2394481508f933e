// An index from hashes to numbers: a place takes a byte and a number.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/hash.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Leads from a hash, of which the upper half counts, to the numbers that were put in for it, and perhaps to others.
/// Thread-safe, signal-safe, nobody waits: what two threads change at the same time may get lost. Begins small, and
/// doubles where it is crowded, in place: buckets are found by the lower bits of the hash's upper half. All zeros to
/// begin with. A handle to memory of others; copies lead to the same.
template <class Number>
class NumberIndex {
 public:
  struct Lead {
    std::uint64_t hash;
    std::uint32_t number;
  };

  /// Calls `visit(number)` for all numbers that may be meant, until it returns true.
  template <class Visit>
  [[gnu::always_inline]] void visit(std::uint64_t hash, Visit visit) const noexcept {
    const std::size_t home = bucket_of(hash, bits());
    for (std::size_t bucket = home, i = 0; i < k_probes; bucket = home ^ ++i) {
      const std::uint64_t tags = buckets_[bucket].tags.load(std::memory_order_acquire);
      for (std::uint64_t lanes = lanes_with(tags, tag_of(hash)); lanes != 0; lanes &= lanes - 1)
        if (visit(buckets_[bucket].numbers[lane_of(lanes)].load(std::memory_order_relaxed))) return;
      if (free_lanes(tags) != 0) [[likely]]
        return;
    }
  }

  /// False: visit() calls nothing.
  bool may_lead(std::uint64_t hash) const noexcept {
    const std::uint64_t tags = buckets_[bucket_of(hash, bits())].tags.load(std::memory_order_acquire);
    return lanes_with(tags, tag_of(hash)) != 0 || free_lanes(tags) == 0;
  }

  void lead(std::uint64_t hash, std::uint32_t number) const noexcept { lead(hash, number, bits()); }

  [[gnu::cold, gnu::noinline]] void forget(std::uint64_t hash, std::uint32_t number) const noexcept {
    forget_in(bucket_of(hash, bits()), {hash, number});
  }

  /// Whether grow() should be called before so many numbers are in the index.
  bool is_crowded(std::size_t numbers) const noexcept { return numbers >= most_in(bits()) && bits() < most_bits_; }

  /// Doubles the index. `lead_at(i)` says what was put in, for i from 0 to `count`. The thread that comes first does
  /// it; others go on meanwhile.
  template <class LeadAt>
  [[gnu::cold]] void grow(std::size_t count, LeadAt lead_at) const noexcept {
    if (state_->grows.exchange(true, std::memory_order_acquire)) return;
    if (is_crowded(count)) {
      const unsigned bits = this->bits();
      const std::size_t buckets = std::size_t{1} << bits;
      const std::uint64_t upper_half = std::uint64_t{buckets} << 32;
      // Numbers that move are put in where they will be found, and taken out where they were. Then those that had
      // found no room find some.
      enum class Pass { put_in, take_out, find_room };
      for (const Pass pass : {Pass::put_in, Pass::take_out, Pass::find_room}) {
        for (std::size_t i = 0; i < count; ++i) {
          const Lead at = lead_at(i);
          if (((at.hash & upper_half) != 0) != (pass != Pass::find_room)) continue;
          if (pass == Pass::take_out)
            forget_in(bucket_of(at.hash, bits), at);
          else if (pass == Pass::put_in || !leads(at))
            lead(at.hash, at.number, bits + 1);
        }
        if (pass == Pass::put_in) state_->more_bits.store(bits + 1 - k_first_bits, std::memory_order_release);
      }
    }
    state_->grows.store(false, std::memory_order_release);
  }

  /// Nothing is in it any more. Nobody else uses it meanwhile.
  void clear() const noexcept {
    for (std::size_t bucket = 0; bucket >> bits() == 0; ++bucket)
      buckets_[bucket].tags.store(0, std::memory_order_relaxed);
    state_->more_bits.store(0, std::memory_order_relaxed);
  }

  /// The state beside the buckets.
  struct State {
    std::atomic<unsigned> more_bits{0};  ///< of bucket numbers, than k_first_bits
    std::atomic<bool> grows{false};
  };
  struct Bucket {
    std::atomic<std::uint64_t> tags{0};  ///< a byte for each lane, 0 for a free one
    std::array<std::atomic<Number>, 8> numbers{};
  };

  /// How many bits so many numbers need.
  static constexpr unsigned bits_for(std::size_t numbers) noexcept {
    unsigned bits = k_first_bits;
    while (most_in(bits) < numbers) ++bits;
    return bits;
  }
  static constexpr std::size_t bytes_for(std::size_t numbers) noexcept {
    return (sizeof(Bucket) << bits_for(numbers)) + k_line;
  }
  /// An index in memory of zeros.
  static NumberIndex in(std::byte* memory, std::size_t numbers) noexcept {
    return {*reinterpret_cast<State*>(memory), reinterpret_cast<Bucket*>(memory + k_line), bits_for(numbers)};
  }
  NumberIndex(State& state, Bucket* buckets, unsigned most_bits) noexcept
      : state_(&state), buckets_(buckets), most_bits_(most_bits) {}

 private:
  static constexpr unsigned k_first_bits = 6;
  static constexpr std::size_t k_line = 64;
  static_assert(sizeof(State) <= k_line);
  static constexpr std::uint64_t k_ones = 0x0101010101010101u;

  /// A number that finds no room in its own bucket is in one of the three beside it.
  static constexpr std::size_t k_probes = 4;

  /// Six of the eight lanes of each bucket.
  static constexpr std::size_t most_in(unsigned bits) noexcept { return std::size_t{6} << bits; }
  unsigned bits() const noexcept { return k_first_bits + state_->more_bits.load(std::memory_order_acquire); }
  static std::size_t bucket_of(std::uint64_t hash, unsigned bits) noexcept {
    return static_cast<std::size_t>(hash >> 32 & ((std::uint64_t{1} << bits) - 1));
  }
  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash >> 57 | 0x80; }
  /// The upper bits of the lanes that have the tag; perhaps of a lane above one of them, too.
  static std::uint64_t lanes_with(std::uint64_t tags, std::uint64_t tag) noexcept {
    const std::uint64_t different = tags ^ tag * k_ones;
    return (different - k_ones) & ~different & k_ones << 7;
  }
  static std::uint64_t free_lanes(std::uint64_t tags) noexcept { return ~tags & k_ones << 7; }
  static unsigned lane_of(std::uint64_t lanes) noexcept { return static_cast<unsigned>(std::countr_zero(lanes)) / 8; }

  /// False: the bucket has changed.
  bool set_tag(std::size_t bucket, std::uint64_t tags, unsigned lane, std::uint64_t tag) const noexcept {
    const std::uint64_t changed = (tags & ~(std::uint64_t{0xff} << lane * 8)) | tag << lane * 8;
    return buckets_[bucket].tags.compare_exchange_strong(tags, changed, std::memory_order_acq_rel);
  }

  void lead(std::uint64_t hash, std::uint32_t number, unsigned bits) const noexcept {
    const std::size_t home = bucket_of(hash, bits);
    for (std::size_t bucket = home, i = 0; i < k_probes; bucket = home ^ ++i) {
      const std::uint64_t tags = buckets_[bucket].tags.load(std::memory_order_relaxed);
      if (const std::uint64_t lanes = free_lanes(tags); lanes != 0)
        return put(bucket, tags, lane_of(lanes), hash, number);
    }
    // All are taken: one of them is replaced, another one each time.
    put(home, buckets_[home].tags.load(std::memory_order_relaxed), number % 8, hash, number);
  }
  bool leads(const Lead& lead) const noexcept {
    bool found = false;
    visit(lead.hash, [&](std::uint32_t number) { return found = number == lead.number; });
    return found;
  }
  void put(std::size_t bucket, std::uint64_t tags, unsigned lane, std::uint64_t hash,
           std::uint32_t number) const noexcept {
    buckets_[bucket].numbers[lane].store(static_cast<Number>(number), std::memory_order_relaxed);
    (void)set_tag(bucket, tags, lane, tag_of(hash));
  }
  void forget_in(std::size_t home, const Lead& lead) const noexcept {
    for (std::size_t bucket = home, i = 0; i < k_probes; bucket = home ^ ++i) {
      const std::uint64_t tags = buckets_[bucket].tags.load(std::memory_order_relaxed);
      for (std::uint64_t lanes = lanes_with(tags, tag_of(lead.hash)); lanes != 0; lanes &= lanes - 1) {
        const unsigned lane = lane_of(lanes);
        if (buckets_[bucket].numbers[lane].load(std::memory_order_relaxed) == lead.number)
          return (void)set_tag(bucket, tags, lane, 0);
      }
    }
  }

  State* state_;
  Bucket* buckets_;
  unsigned most_bits_;
};

/// An index with its memory, for so many numbers. Constant-initialised.
template <class Number, std::size_t k_numbers>
class NumberIndexFor {
  using Index = NumberIndex<Number>;

 public:
  Index index() noexcept { return {state_, buckets_.data(), k_bits}; }

 private:
  static constexpr unsigned k_bits = Index::bits_for(k_numbers);
  typename Index::State state_{};
  std::array<typename Index::Bucket, std::size_t{1} << k_bits> buckets_{};
};

}  // namespace jitunwind
#pragma GCC visibility pop

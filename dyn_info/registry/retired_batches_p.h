// Records of procedures that were retired together.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

/// The number of a record; 0 means none.
using BatchId = std::uint32_t;

/// A record belongs to the thread that took it, and while it is pending or waiting to the holder of the writers' lock.
struct alignas(64) RetiredBatch {
  static constexpr std::uint32_t k_no_slot = ~std::uint32_t{0};

  std::atomic<std::uint64_t> serial{0};  ///< counts the uses of this record; tells a ticket from older ones
  std::atomic<BatchId> next{0};          ///< next pending, waiting or free record
  BatchId previous = 0;                  ///< the waiting record before it
  NodeId first = 0;                      ///< first of its nodes, which batch_next links
  std::uint32_t blocking_slot = 0;       ///< slot that was last seen to hold one of its nodes, or k_no_slot
  std::uint32_t checks = 0;
  void (*on_reclaimed)(void*) = nullptr;
  void* argument = nullptr;
};
static_assert(sizeof(RetiredBatch) == 64);

class RetiredBatches {
 public:
  constexpr explicit RetiredBatches(RetiredBatch* first_block) noexcept : records_(first_block) {}
  static constexpr unsigned k_first_bits = 8;  ///< log2 of the number of records in the first block

  RetiredBatch& operator[](BatchId id) const noexcept { return records_[id - 1]; }
  bool contains(std::uint64_t id) const noexcept { return id != 0 && id < fresh_.load(std::memory_order_acquire); }

  // These need no lock and never wait.

  /// Returns 0 if there is no memory.
  BatchId take() noexcept;
  /// The ticket of its current use counts as reclaimed from now on.
  void give_back(BatchId id) noexcept;
  /// Leaves a batch of dead nodes to the holder of the lock, which takes them out of the list and the index.
  void push_pending(BatchId id) noexcept;
  bool any_pending() const noexcept { return pending_.load(std::memory_order_seq_cst) != 0; }
  bool any_waiting() const noexcept { return first_waiting_.load(std::memory_order_relaxed) != 0; }

  // The caller of these holds the lock.

  /// Takes all pending records, which `next` links.
  BatchId take_pending() noexcept { return pending_.exchange(0, std::memory_order_seq_cst); }
  /// A waiting batch is out of the list and the index but not reclaimed.
  void add_waiting(BatchId id) noexcept;
  void remove_waiting(BatchId id) noexcept;
  BatchId first_waiting() const noexcept { return first_waiting_.load(std::memory_order_relaxed); }

 private:
  GrowingArray<RetiredBatch, k_first_bits, 20> records_;
  std::atomic<BatchId> fresh_{1};
  std::atomic<std::uint64_t> free_{0};  // a stack: number of changes << 32 | top record; the number prevents ABA
  std::atomic<BatchId> pending_{0};
  std::atomic<BatchId> first_waiting_{0};
  BatchId last_waiting_ = 0;
};

}  // namespace jitunwind

// Records of procedures that were retired together.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

/// A record by number; 0: none.
using BatchId = std::uint32_t;

/// Belongs to whoever took it; then, when it is pending or waiting, to the holder of the writers' lock.
struct alignas(64) RetiredBatch {
  static constexpr std::uint32_t k_no_slot = ~std::uint32_t{0};

  std::atomic<std::uint64_t> serial{0};     ///< counts the uses of this record; tells a ticket from older ones
  std::atomic<BatchId> next{0};             ///< pending, waiting, or free
  BatchId previous = 0;                     ///< waiting
  NodeId first = 0;                         ///< its nodes, linked by batch_next
  std::uint32_t blocking_slot = k_no_slot;  ///< was seen to hold one of it
  std::uint32_t checks = 0;
  void (*on_reclaimed)(void*) = nullptr;
  void* argument = nullptr;
};
static_assert(sizeof(RetiredBatch) == 64);

class RetiredBatches {
 public:
  constexpr explicit RetiredBatches(RetiredBatch* first_block) noexcept : records_(first_block) {}
  static constexpr unsigned k_first_bits = 8;  ///< of the number of records in the first block

  RetiredBatch& operator[](BatchId id) const noexcept { return records_[id - 1]; }
  bool contains(std::uint64_t id) const noexcept { return id != 0 && id < fresh_.load(std::memory_order_acquire); }

  // Without the lock; no waiting.

  /// 0: out of memory.
  BatchId take() noexcept;
  /// The ticket of its current use becomes one of the past.
  void give_back(BatchId id) noexcept;
  /// Leaves a batch whose nodes are dead to the holder of the lock, to take them out of list and index.
  void push_pending(BatchId id) noexcept;
  bool any_pending() const noexcept { return pending_.load(std::memory_order_seq_cst) != 0; }
  bool any_waiting() const noexcept { return first_waiting_.load(std::memory_order_relaxed) != 0; }

  // For the holder of the lock.

  /// All pending ones, linked by `next`.
  BatchId take_pending() noexcept { return pending_.exchange(0, std::memory_order_seq_cst); }
  /// Waiting: out of list and index, but not reclaimed.
  void add_waiting(BatchId id) noexcept;
  void remove_waiting(BatchId id) noexcept;
  BatchId first_waiting() const noexcept { return first_waiting_.load(std::memory_order_relaxed); }

 private:
  GrowingArray<RetiredBatch, k_first_bits, 20> records_;
  std::atomic<BatchId> fresh_{1};
  std::atomic<std::uint64_t> free_{0};  // number of changes << 32 | record: a stack
  std::atomic<BatchId> pending_{0};
  std::atomic<BatchId> first_waiting_{0};
  BatchId last_waiting_ = 0;
};

}  // namespace jitunwind

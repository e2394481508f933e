// Takes procedures out of the registry: finds who still holds them, and decides when their memory goes back to its
// owner.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

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

/// The nodes that a writer waits for: one node, or all nodes of a batch.
struct LeavingNodes {
  NodeId node = 0;
  BatchId batch = 0;
};

/// Callbacks that run after the lock is released.
class Due {
 public:
  bool full() const noexcept { return count_ == calls_.size(); }
  void add(void (*function)(void*), void* argument) noexcept { calls_[count_++] = {function, argument}; }
  void run() const noexcept {
    for (std::size_t i = 0; i < count_; ++i) calls_[i].function(calls_[i].argument);
  }

 private:
  struct Call {
    void (*function)(void*);
    void* argument;
  };
  std::array<Call, 4> calls_;
  std::size_t count_ = 0;
};

// These need no lock.

/// Returns whether the calling thread is inside a lookup that holds the node.
bool own_thread_holds(NodeId id) noexcept;
/// Marks the node dead, so that no lookup takes hold of it any more. Returns false if it was not live.
bool mark_dead(RegisteredNode found) noexcept;
/// Prefetches all memory that unlinking will touch, so that the cache misses overlap.
void prefetch_neighbours(NodeId id) noexcept;
/// Marks those of the procedures that are registered dead and gives them to the batch. Returns how many were not.
std::uint32_t collect(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept;
/// Retires procedures where another thread may hold the lock: docs/registry.md "Retire while the lock is taken".
std::uint32_t retire_beside_lock(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept;

// The caller of these holds the lock.

/// Takes a target that is dead and not freed out of the list and the index, waits for its holders, frees its nodes and
/// releases the lock. After the return nobody has any of its descriptors.
void take_out(LeavingNodes target, Due& due) noexcept;
void free_node(NodeId id) noexcept;
/// A caller of the index's remove() or unreserve() calls it afterwards.
void trim_index() noexcept;
/// Takes out the batches that others have left to the holder of the lock.
void drain_pending() noexcept;
/// Gives the memory of a waiting batch back to its owner if nobody holds it. If `due` is null, callbacks cannot be
/// made, and a batch that has one stays.
bool reclaim(BatchId id, Due* due) noexcept;
/// Does the same after it has dropped the hold of an owner that is gone.
bool reclaim_from_the_gone(BatchId id, Due& due) noexcept;
/// Does what is left to the holder of the lock, and releases it. Work that arrives meanwhile is done by this thread, or
/// by another that has the lock then. Returns true if there was a bypass.
bool unlock(Due* due) noexcept;
/// Finishes what other threads had begun. A forked child, which has the lock, calls it.
void take_out_orphans() noexcept;

}  // namespace jitunwind

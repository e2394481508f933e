// Takes procedures out of the registry: finds who still holds them, and decides when their memory goes back to its
// owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/dyn_info/registry/retired_batches_p.h"

namespace jitunwind {

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

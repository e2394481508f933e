// Taking procedures out of the registry: who still holds them, when their memory goes back to its owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/dyn_info/registry/retired_batches_p.h"

namespace jitunwind {

/// What is waited for: one node, or all of a batch.
struct Target {
  NodeId node = 0;
  BatchId batch = 0;
};

/// Callbacks to be made when the lock is free again.
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

// Without the lock.

/// The calling thread is inside a lookup that holds the node.
bool own_thread_holds(NodeId id) noexcept;
/// From here on no lookup takes hold of it. False: it is not live any more.
bool mark_dead(RegisteredNode found) noexcept;
/// Has the memory that unlinking will touch fetched, all of it at once.
void prefetch_neighbours(NodeId id) noexcept;
/// Marks what is registered of the procedures dead and has the batch own it. Number of those that were not.
std::uint32_t collect(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept;
/// As register_procedures() does it, without the lock being free: docs/registry.md "Retire while the lock is taken".
std::uint32_t retire_beside_lock(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept;

// With the lock.

/// The target is dead and not freed. Takes it out of list and index, waits for those who hold it, frees its nodes,
/// frees the lock; on return nobody has any of its descriptors.
void take_out(Target target, Due& due) noexcept;
void free_node(NodeId id) noexcept;
/// Behind each remove() and unreserve() of the index.
void trim_index() noexcept;
/// Takes out what others have left to the holder of the lock.
void drain_pending() noexcept;
/// Gives the memory of a batch that waits back to its owner, if nobody holds it. `due` null: callbacks cannot be made.
bool reclaim(BatchId id, Due* due) noexcept;
/// The same after having looked whether the one who holds it is gone.
bool reclaim_from_the_gone(BatchId id, Due& due) noexcept;
/// Whatever is left to the holder of the lock is done before the lock is free, or by another that has it then. True:
/// there was a bypass.
bool unlock(Due* due) noexcept;
/// After fork, in the child, which has the lock: finishes what other threads had begun.
void take_out_orphans() noexcept;

}  // namespace jitunwind

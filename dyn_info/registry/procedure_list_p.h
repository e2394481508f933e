// The list of procedures that other processes read (dyn_info/libunwind-dynamic.h, unw_dyn_info_list_t): its head, the
// ELF note that leads to the head, and the changes. The chain is valid after every single store of a change.
#pragma once

#include <atomic>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

/// Returns the head. Signal-safe.
unw_dyn_info_list_t& procedure_list_head() noexcept;

/// The order among the nodes is the truth for writers; the descriptors' own `next` is its image for readers. Only the
/// holder of the writers' lock calls the members that do not say otherwise.
class ProcedureList {
 public:
  constexpr explicit ProcedureList(const NodePool& nodes) noexcept : nodes_(nodes) {}

  /// Writers call these around a change of any number of procedures. `generation` is odd in between.
  void begin_change() noexcept;
  void end_change() noexcept;

  /// Prefetches the descriptors that unlinking this one would probably write to. Needs no lock.
  static void prefetch_neighbours(unw_dyn_info_t* info) noexcept;

  void push_front(NodeId id) noexcept;
  /// The descriptor keeps its `next`, since readers may be at it.
  void unlink(const ProcedureNode& node) noexcept;
  NodeId first() const noexcept { return first_; }

  /// Takes a chain of dead nodes (batch_next) out of the descriptors' image of the order, though not out of the order
  /// itself. Another thread, not the caller, holds the lock. Precondition: nothing that the list leads to is reclaimed
  /// meanwhile.
  void bend_around(NodeId batch) const noexcept;

 private:
  bool is_live(NodeId id) const noexcept;
  void skip_dead(unw_dyn_info_t*& place) const noexcept;
  void skip_dead_behind(NodeId id) const noexcept;

  const NodePool& nodes_;
  NodeId first_ = 0;
  std::atomic<NodeId> being_pushed_{0};
};

}  // namespace jitunwind

// The list of procedures that other processes read (dyn_info/libunwind-dynamic.h, unw_dyn_info_list_t): its head, the
// ELF note that leads to the head, and the changes, each of which leaves a valid chain behind every single store.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

/// The head. Signal-safe.
unw_dyn_info_list_t& procedure_list_head() noexcept;

/// What nodes say about the order of the list is the truth for writers; the descriptors' own `next` is its image for
/// readers. All for the holder of the writers' lock.
class ProcedureList {
 public:
  constexpr explicit ProcedureList(const NodePool& nodes) noexcept : nodes_(nodes) {}

  /// Around a change of any number of procedures: `generation` is odd in between.
  void begin_change() noexcept;
  void end_change() noexcept;

  /// Without the lock: has the descriptors fetched that unlinking this one would probably write to.
  static void prefetch_neighbours(unw_dyn_info_t* info) noexcept;

  void push_front(NodeId id) noexcept;
  /// The descriptor keeps its `next`, on which readers may stand.
  void unlink(const ProcedureNode& node) noexcept;
  NodeId first() const noexcept { return first_; }

  /// Without the lock, while somebody else has it: takes a chain of nodes (batch_next), which are dead, out of the
  /// descriptors' image of the order, though not out of the order itself. Precondition: nothing the list leads to is
  /// reclaimed meanwhile.
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

#include "dyn_info/procedure_nodes_p.h"

#include <utility>

namespace jitunwind {

// `prev` of a registered descriptor is its node's number, made odd so that no pointer looks like it.

RegisteredNode NodePool::find(unw_dyn_info_t* info) const noexcept {
  if (!can_bind(info)) return {};
  const std::atomic_ref<unw_dyn_info_t*> handle(info->prev);
  const auto value = reinterpret_cast<std::uintptr_t>(handle.load(std::memory_order_relaxed));
  if (value % 2 == 0 || !contains(value >> 1)) return {};
  const auto id = static_cast<NodeId>(value >> 1);
  const ProcedureNode& node = (*this)[id];
  const NodeState state(node.state.load(std::memory_order_acquire));
  if (node.info.load(std::memory_order_acquire) != info) return {};
  return {id, state};
}

void NodePool::bind(NodeId id, unw_dyn_info_t* info) noexcept {
  (*this)[id].info.store(info, std::memory_order_release);
  std::atomic_ref<unw_dyn_info_t*>(info->prev)
      .store(reinterpret_cast<unw_dyn_info_t*>(std::uintptr_t{id} << 1 | 1), std::memory_order_relaxed);
}

NodeId NodePool::take() noexcept {
  if (const NodeId id = free_; id != 0) {
    free_ = (*this)[id].batch_next;
    return id;
  }
  const NodeId id = fresh_.load(std::memory_order_relaxed);
  if (!nodes_.make(id - 1)) return 0;
  fresh_.store(id + 1, std::memory_order_release);
  return id;
}

void NodePool::give_back(NodeId id) noexcept {
  const NodeId rested = std::exchange(resting_[next_resting_], id);
  next_resting_ = (next_resting_ + 1) % k_rest;
  if (rested == 0) return;
  (*this)[rested].batch_next = free_;
  free_ = rested;
}

}  // namespace jitunwind

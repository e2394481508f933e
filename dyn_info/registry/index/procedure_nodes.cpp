#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace jitunwind {

namespace {

// `prev` of a registered descriptor has three fields. Bit 0 is 1, so that no pointer looks like it. 30 bits hold the
// number of its node. 33 bits hold the distance to the newer neighbour in the list, in units of 8 bytes.
constexpr unsigned k_number_at = 1;
constexpr unsigned k_distance_at = 31;
constexpr std::uint64_t k_number_mask = (std::uint64_t{1} << (k_distance_at - k_number_at)) - 1;
constexpr std::int64_t k_distance_unit = alignof(unw_dyn_info_t);

std::uint64_t read_handle(unw_dyn_info_t* info) noexcept {
  return reinterpret_cast<std::uintptr_t>(std::atomic_ref(info->prev).load(std::memory_order_relaxed));
}

void write_handle(unw_dyn_info_t* info, std::uint64_t value) noexcept {
  std::atomic_ref<unw_dyn_info_t*>(info->prev)
      .store(reinterpret_cast<unw_dyn_info_t*>(value), std::memory_order_relaxed);
}

}  // namespace

RegisteredNode NodePool::find(unw_dyn_info_t* info) const noexcept {
  if (!can_bind(info)) return {};
  const auto seen = [&](NodeId id) -> RegisteredNode {
    const ProcedureNode& node = (*this)[id];
    const NodeState state(node.state.load(std::memory_order_acquire));
    if (node.info.load(std::memory_order_acquire) != info) return {};
    return {id, state};
  };
  if (const NodeId probable = place(info); probable != 0) {
    if (const RegisteredNode found = seen(probable); found.node != 0) return found;
  }
  const std::uint64_t handle = read_handle(info);
  const std::uint64_t number = handle >> k_number_at & k_number_mask;
  if (handle % 2 == 0 || !contains(number)) return {};
  return seen(static_cast<NodeId>(number));
}

void NodePool::bind(NodeId id, ProcedureNode& node, unw_dyn_info_t* info) noexcept {
  node.info.store(info, std::memory_order_release);
  write_handle(info, std::uint64_t{id} << k_number_at | 1);
}

void NodePool::note_newer(unw_dyn_info_t* info, const unw_dyn_info_t* newer) noexcept {
  std::int64_t distance = 0;
  if (newer != nullptr) {
    const std::uintptr_t bytes = reinterpret_cast<std::uintptr_t>(newer) - reinterpret_cast<std::uintptr_t>(info);
    distance = static_cast<std::int64_t>(bytes) / k_distance_unit;
  }
  const std::uint64_t shifted = static_cast<std::uint64_t>(distance) << k_distance_at;
  const bool fits = static_cast<std::int64_t>(shifted) >> k_distance_at == distance;
  const std::uint64_t number = read_handle(info) & (k_number_mask << k_number_at | 1);
  write_handle(info, (fits ? shifted : 0) | number);
}

const void* NodePool::probably_newer(unw_dyn_info_t* info) noexcept {
  const std::int64_t distance = static_cast<std::int64_t>(read_handle(info)) >> k_distance_at;
  if (distance == 0) return nullptr;
  const auto bytes = static_cast<std::uintptr_t>(distance * k_distance_unit);
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(info) + bytes);
}

[[gnu::always_inline]] inline NodeId NodePool::take_from(std::uint32_t number, unsigned node) noexcept {
  Slab& slab = slabs_[number - 1];
  slab.free &= ~(std::uint64_t{1} << node);
  if (slab.free == 0) {
    (slab.previous == 0 ? with_free_ : slabs_[slab.previous - 1].next) = slab.next;
    if (slab.next != 0) slabs_[slab.next - 1].previous = slab.previous;
  }
  ++taken_;
  return (number - 1) * k_slab_size + node + 1;
}

NodeId NodePool::take(const unw_dyn_info_t* info) noexcept {
  SlabOfPage* const table = slab_of_page_.load(std::memory_order_relaxed);
  if (table != nullptr) {
    const std::uint64_t number = number_of(info);
    std::atomic<std::uint32_t>& page = slab_of(number, *table);
    std::uint32_t slab = page.load(std::memory_order_relaxed);
    if (slab == 0) page.store(slab = slab_for_page(), std::memory_order_relaxed);
    const auto node = static_cast<unsigned>(number % k_slab_size);
    if (slab != 0 && (slabs_[slab - 1].free >> node & 1) != 0) return take_from(slab, node);
  }
  if (with_free_ == 0 && !open_slab()) return 0;
  return take_from(with_free_, static_cast<unsigned>(std::countr_zero(slabs_[with_free_ - 1].free)));
}

std::uint32_t NodePool::slab_for_page() noexcept {
  if (with_free_ != 0 && ~slabs_[with_free_ - 1].free == 0) return with_free_;
  // Scattered descriptors would leave most nodes of their slabs unused, so at most one of nine nodes may be free.
  const bool many_free = slabs_used_ * k_slab_size > taken_ + taken_ / 8;
  return many_free || !open_slab() ? 0 : slabs_used_;
}

void NodePool::give_back(NodeId id) noexcept {
  --taken_;
  __builtin_prefetch(&slabs_[(id - 1) / k_slab_size], 1);  // read when the node is free again
  const NodeId released = std::exchange(set_aside_[next_set_aside_], id);
  next_set_aside_ = (next_set_aside_ + 1) % k_set_aside;
  if (released == 0) return;
  const std::uint32_t number = (released - 1) / k_slab_size + 1;
  Slab& slab = slabs_[number - 1];
  if (slab.free == 0) link(number);
  slab.free |= std::uint64_t{1} << (released - 1) % k_slab_size;
}

bool NodePool::open_slab() noexcept {
  if (!nodes_.make(std::uint64_t{slabs_used_} * k_slab_size) || !slabs_.make(slabs_used_)) return false;
  slabs_[slabs_used_].free = ~std::uint64_t{0};
  link(++slabs_used_);
  fresh_.store(slabs_used_ * k_slab_size + 1, std::memory_order_release);
  if (slabs_used_ >= k_fewest_placed / k_slab_size && slab_of_page_.load(std::memory_order_relaxed) == nullptr) {
    auto* table = static_cast<SlabOfPage*>(map_zeroed(sizeof(SlabOfPage), Pages::small));
    slab_of_page_.store(table, std::memory_order_release);
  }
  return true;
}

/// Adds a slab, which has free nodes now, to the list of such slabs.
void NodePool::link(std::uint32_t number) noexcept {
  Slab& slab = slabs_[number - 1];
  slab.next = with_free_;
  slab.previous = 0;
  if (with_free_ != 0) slabs_[with_free_ - 1].previous = number;
  with_free_ = number;
}

}  // namespace jitunwind

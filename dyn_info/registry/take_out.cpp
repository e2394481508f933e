#include "jitunwind/dyn_info/registry/take_out_p.h"

#include <sched.h>

#include <algorithm>

#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

namespace {

using Life = NodeState::Life;

bool contains(const LeavingNodes& target, NodeId id) noexcept {
  if (id == 0) return false;
  return target.batch == 0 ? id == target.node
                           : registry.nodes[id].batch.load(std::memory_order_relaxed) == target.batch;
}

bool holds(const Hold& hold, const LeavingNodes& target) noexcept {
  return contains(target, hold.node.load(std::memory_order_seq_cst)) ||
         contains(target, hold.answer.load(std::memory_order_seq_cst));
}

/// Decides whether a hold of the calling thread is alive. A hold of a frame that was left by a jump is dropped, since
/// its node will become another procedure's.
bool own_hold_counts(const ReaderSlot& slot, Hold& hold) noexcept {
  if (!slot.is_over(hold, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return true;
  hold.node.store(0, std::memory_order_relaxed);
  hold.answer.store(0, std::memory_order_relaxed);
  return false;
}

bool blocks(ReaderSlot& slot, const LeavingNodes& target) noexcept {
  const bool own = &slot == ReaderSlots::find_own();
  return slot.any_hold([&](Hold& hold) { return holds(hold, target) && (!own || own_hold_counts(slot, hold)); });
}

constexpr std::uint32_t k_no_reader = RetiredBatch::k_no_slot;

/// The nodes must be dead: a lookup that does not hold one of them now never will.
std::uint32_t find_blocking_slot(const LeavingNodes& target) noexcept {
  const std::uint32_t size = registry.slots.size();
  for (std::uint32_t i = 0; i < size; ++i) {
    if (blocks(registry.slots[i], target)) return i;
  }
  return k_no_reader;
}

/// Drops what the slot holds of the target if its owner has exited or has left the frame that holds it.
void write_off(ReaderSlot& slot, const LeavingNodes& target) noexcept {
  if (&slot == ReaderSlots::find_own() || ReaderSlots::free_if_exited(slot)) return;
  slot.any_hold([&](Hold& hold) {
    if (holds(hold, target)) (void)ReaderSlots::drop_if_abandoned(slot, hold);
    return false;
  });
}

void pause(unsigned round) noexcept {
  constexpr unsigned k_spins = 64;
  constexpr unsigned k_yields = 64;
  if (round < k_spins) return;
  const ErrnoKeeper keep_errno;
  if (round < k_spins + k_yields) {
    sched_yield();
  } else {
    const unsigned doublings = std::min((round - k_spins - k_yields) / 16, 5u);
    sleep_for_nanoseconds(20'000L << doublings);
  }
}

/// Visits each slot but the calling thread's own.
template <class Function>
void for_other_slots(Function&& visit) noexcept {
  const std::uint32_t size = registry.slots.size();
  for (std::uint32_t i = 0; i < size; ++i) {
    if (&registry.slots[i] != ReaderSlots::find_own()) visit(registry.slots[i]);
  }
}

void wait_for_holds(const LeavingNodes& target) noexcept {
  for_other_slots([&](ReaderSlot& slot) {
    for (unsigned round = 0; blocks(slot, target); ++round) {
      if (round == 0) count_event(Counter::cancel_waited);
      pause(round);
      if (round % 32 == 31) write_off(slot, target);
    }
  });
}

// take_out() and unlock() save no registers for these, which are seldom called: they are not inlined.

[[gnu::noinline]] void wait_without_lock(const LeavingNodes& target) noexcept {
  (void)unlock(nullptr);
  wait_for_holds(target);
  registry.lock.lock();
}

/// Waits for the bypasses that are under way at the call.
void wait_for_bypasses() noexcept {
  for_other_slots([](ReaderSlot& slot) {
    const std::uint32_t walk = slot.list_walks.load(std::memory_order_seq_cst);
    for (unsigned round = 0; walk % 2 != 0 && slot.list_walks.load(std::memory_order_seq_cst) == walk; ++round) {
      pause(round);
    }
  });
}

/// A bypass that was under way when the node died may have linked the descriptor into the list again, until a holder of
/// the lock repairs the list. A second bypass may have found it there, so there are two rounds.
[[gnu::noinline]] void wait_for_repairs() noexcept {
  bool disturbed = true;
  for (int round = 0; round < 2 && disturbed; ++round) {
    wait_for_bypasses();
    registry.lock.lock();
    disturbed = unlock(nullptr);
  }
}

// Unlinking and freeing. The caller of these functions holds the lock.

void unlink(NodeId id) noexcept {
  ProcedureNode& node = registry.nodes[id];
  registry.list.unlink(node);
  registry.index.remove(node);
  trim_index();
  registry.registered.store(registry.registered.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

template <class Function>
[[gnu::always_inline]] inline void for_nodes(const LeavingNodes& target, Function&& visit) noexcept {
  if (target.batch == 0) return visit(target.node);
  for (NodeId id = registry.batches[target.batch].first; id != 0;) {
    const NodeId next = registry.nodes[id].batch_next;
    visit(id);
    id = next;
  }
}

void unlink_all(const LeavingNodes& target) noexcept {
  registry.list.begin_change();
  for_nodes(target, unlink);
  registry.list.end_change();
}

/// Drains, and tries a few batches, so that the caller stays O(1) however many wait.
[[gnu::noinline]] void do_what_is_left(Due* due) noexcept {
  drain_pending();
  for (int i = 0; i < 4 && due != nullptr && !due->full(); ++i) {
    const BatchId id = registry.batches.first_waiting();
    if (id == 0 || reclaim(id, due)) continue;
    registry.batches.remove_waiting(id);
    registry.batches.add_waiting(id);
    // A batch that waits for long may wait for an owner that is gone.
    if (++registry.batches[id].checks % 256 == 0) (void)reclaim_from_the_gone(id, *due);
  }
}

}  // namespace

bool own_thread_holds(NodeId id) noexcept {
  ReaderSlot* own = ReaderSlots::find_own();
  return own != nullptr && own->depth.load(std::memory_order_relaxed) != 0 && blocks(*own, {id, 0});
}

bool mark_dead(RegisteredNode found) noexcept {
  if (!found.state.live()) return false;
  ProcedureNode& node = registry.nodes[found.node];
  const std::uint64_t start = node.start.load(std::memory_order_acquire);
  const std::uint64_t end = node.end.load(std::memory_order_acquire);
  std::uint64_t live = found.state.word();
  if (!node.state.compare_exchange_strong(live, found.state.with(Life::dead).word(), std::memory_order_seq_cst))
    return false;
  registry.changes.count(start, end);
  return true;
}

void prefetch_neighbours(NodeId id) noexcept {
  const ProcedureNode& node = registry.nodes[id];
  registry.index.prefetch_removal(node);
  const NodeId next = node.list_next.load(std::memory_order_relaxed);
  const NodeId previous = node.list_previous.load(std::memory_order_relaxed);
  if (next != 0) __builtin_prefetch(&registry.nodes[next], 1);
  if (previous != 0) __builtin_prefetch(&registry.nodes[previous], 1);
}

std::uint32_t collect(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept {
  RetiredBatch& batch = registry.batches[id];
  batch.first = 0;
  NodeId last = 0;
  std::uint32_t skipped = 0;
  for (unw_dyn_info_t* di : procedures) {
    const RegisteredNode found = registry.nodes.find(di);
    if (!mark_dead(found)) {
      ++skipped;
      continue;
    }
    ProcedureNode& node = registry.nodes[found.node];
    node.batch.store(id, std::memory_order_relaxed);
    node.batch_next = 0;
    (last == 0 ? batch.first : registry.nodes[last].batch_next) = found.node;
    last = found.node;
  }
  return skipped;
}

void free_node(NodeId id) noexcept {
  ProcedureNode& node = registry.nodes[id];
  registry.derived.clear(id, node.end.load(std::memory_order_relaxed) - node.start.load(std::memory_order_relaxed));
  node.info.store(nullptr, std::memory_order_release);
  const NodeState state(node.state.load(std::memory_order_relaxed));
  node.state.store(state.with(Life::free).word(), std::memory_order_release);
  registry.nodes.give_back(id);
}

void trim_index() noexcept {
  if (!registry.index.has_too_many_empty()) return;
  answer_questions();
  registry.index.trim();
}

bool reclaim(BatchId id, Due* due) noexcept {
  RetiredBatch& batch = registry.batches[id];
  if (batch.on_reclaimed != nullptr && (due == nullptr || due->full())) return false;
  const LeavingNodes target{0, id};
  if (batch.blocking_slot != k_no_reader && blocks(registry.slots[batch.blocking_slot], target)) return false;
  batch.blocking_slot = find_blocking_slot(target);
  if (batch.blocking_slot != k_no_reader) return false;
  // A bypass may be at one of the batch's descriptors, or may have linked it into the list again; then it has left
  // work.
  if (registry.lock.has_bypass() || registry.batches.any_pending()) return false;
  for_nodes(target, free_node);
  if (batch.on_reclaimed != nullptr) due->add(batch.on_reclaimed, batch.argument);
  registry.batches.remove_waiting(id);
  registry.batches.give_back(id);
  return true;
}

bool reclaim_from_the_gone(BatchId id, Due& due) noexcept {
  const std::uint32_t blocking = registry.batches[id].blocking_slot;
  if (blocking != k_no_reader) write_off(registry.slots[blocking], {0, id});
  return reclaim(id, &due);
}

void drain_pending() noexcept {
  while (registry.batches.any_pending()) {
    BatchId id = registry.batches.take_pending();
    for (BatchId i = id; i != 0; i = registry.batches[i].next.load(std::memory_order_relaxed)) unlink_all({0, i});
    while (id != 0) {
      const BatchId next = registry.batches[id].next.load(std::memory_order_relaxed);
      registry.batches.add_waiting(id);
      (void)reclaim(id, nullptr);
      id = next;
    }
  }
}

bool unlock(Due* due) noexcept {
  bool bypass = false;
  do {
    if (registry.batches.any_pending() || (due != nullptr && registry.batches.any_waiting())) do_what_is_left(due);
    bypass = registry.lock.unlock() || bypass;
  } while (registry.batches.any_pending() && registry.lock.try_lock());
  return bypass;
}

void take_out(LeavingNodes target, Due& due) noexcept {
  const std::uint64_t bypasses = registry.bypasses.load(std::memory_order_relaxed);
  unlink_all(target);
  if (find_blocking_slot(target) != k_no_reader) wait_without_lock(target);
  for_nodes(target, free_node);
  if (target.batch != 0) registry.batches.give_back(target.batch);
  if (unlock(&due) || registry.bypasses.load(std::memory_order_relaxed) != bypasses) wait_for_repairs();
}

std::uint32_t retire_beside_lock(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept {
  ReaderSlot* slot = registry.slots.own();
  if (slot != nullptr) {
    slot->list_walks.fetch_add(1, std::memory_order_seq_cst);
    registry.bypasses.fetch_add(1, std::memory_order_relaxed);
    registry.lock.begin_bypass();
  }
  registry.retiring.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t skipped = collect(procedures, id);
  const NodeId first = registry.batches[id].first;
  if (first != 0 || procedures.empty()) registry.batches.push_pending(id);
  registry.retiring.fetch_sub(1, std::memory_order_seq_cst);
  const bool locked = registry.lock.try_lock();
  if (slot != nullptr) {
    if (!locked) registry.list.bend_around(first);
    registry.lock.end_bypass();
    slot->list_walks.fetch_add(1, std::memory_order_seq_cst);
  }
  if (locked) (void)unlock(nullptr);
  return skipped;
}

void take_out_orphans() noexcept {
  drain_pending();
  if (registry.retiring.exchange(0, std::memory_order_relaxed) == 0) return;
  registry.list.begin_change();
  for (NodeId id = registry.list.first(); id != 0;) {
    const NodeId next = registry.nodes[id].list_next.load(std::memory_order_relaxed);
    if (NodeState(registry.nodes[id].state.load(std::memory_order_relaxed)).life() == Life::dead) {
      unlink(id);
      free_node(id);
    }
    id = next;
  }
  registry.list.end_change();
}

}  // namespace jitunwind

#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"

#include <signal.h>

#include <algorithm>

#include "jitunwind/dyn_info/registry/registry_state_p.h"

namespace jitunwind {

constinit thread_local ReaderSlot* own_reader_slot = nullptr;

namespace {

constexpr std::uint32_t k_being_freed = ~std::uint32_t{0};  // no thread has this id

constexpr std::uint32_t thread_of(std::uint64_t owner) { return static_cast<std::uint32_t>(owner); }
constexpr std::uint64_t with_thread(std::uint64_t owner, std::uint32_t thread) { return owner >> 32 << 32 | thread; }
constexpr std::uint64_t next_owner(std::uint64_t owner, std::uint32_t thread) {
  return with_thread(owner + (std::uint64_t{1} << 32), thread);
}

void clear(ReaderSlot& slot) noexcept {
  for (unsigned level = slot.levels_used.load(std::memory_order_relaxed); level-- > 0;) {
    Hold& hold = slot.holds[level];
    hold.question.store(0, std::memory_order_relaxed);
    hold.answer.store(0, std::memory_order_release);
    hold.node.store(0, std::memory_order_release);
  }
  slot.list_walks.store(0, std::memory_order_release);
  slot.depth.store(0, std::memory_order_relaxed);
}

/// Decides, from a frame at `here`, whether a jump left this thread's frame at `position`. A hold nested in another is
/// in a younger frame, a little further down the stack. A hold further up was reached by a jump over the frame of the
/// older hold. The older hold is over then, unless this is a signal handler on a stack of its own.
bool jumped_over(FramePosition position, std::uint64_t here, std::uint64_t thread_locals) noexcept {
  constexpr std::uint64_t k_near = 1u << 16;
  if (position.unknown() || position.above(here) < k_near) return false;
  stack_t handlers{};
  sigaltstack(nullptr, &handlers);
  const auto handlers_begin = reinterpret_cast<std::uintptr_t>(handlers.ss_sp);
  const bool in_handlers = position.above(handlers_begin) < handlers.ss_size;
  if (in_handlers && (handlers.ss_flags & (SS_ONSTACK | SS_DISABLE)) == 0) return true;
  return !frame_may_be_alive(position, here, thread_locals);
}

}  // namespace

unsigned ReaderSlot::free_level(std::uint64_t here) noexcept {
  unsigned level = depth.load(std::memory_order_relaxed);
  while (level > 0 && is_over(holds[level - 1], here)) leave(--level);
  return level;
}

bool ReaderSlot::is_over(const Hold& hold, std::uint64_t here) const noexcept {
  return jumped_over(hold.position(), here, thread_locals.load(std::memory_order_relaxed));
}

ReaderSlot* ReaderSlots::take_over(ReaderSlot& slot, std::uint64_t owner, std::uint32_t thread) noexcept {
  if (!slot.owner.compare_exchange_strong(owner, next_owner(owner, thread))) return nullptr;
  clear(slot);
  slot.thread_locals.store(reinterpret_cast<std::uintptr_t>(&own_reader_slot), std::memory_order_relaxed);
  slot.claimed_at.store(boot_time_ns(), std::memory_order_release);
  return &slot;
}

ReaderSlot* ReaderSlots::claim() noexcept {
  const std::uint32_t thread = this_thread_id();
  // A slot with this id is that of an exited thread with the same id, or the one that this thread was about to claim
  // when a signal came.
  std::uint32_t used = size();
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t owner = slots_[i].owner.load(std::memory_order_acquire);
    if (thread_of(owner) != thread) continue;
    if (ReaderSlot* slot = take_over(slots_[i], owner, thread)) return slot;
  }
  if (ReaderSlot* slot = claim_free(0, thread)) return slot;
  if (ReaderSlot* slot = claim_of_exited(thread)) return slot;
  // Each round gets a slot or sees another thread get it.
  for (; slots_.make(used); used = size()) {
    const std::uint32_t first = used;
    used_.compare_exchange_strong(used, used + 1, std::memory_order_seq_cst);
    if (ReaderSlot* slot = claim_free(first, thread)) return slot;
  }
  return nullptr;
}

ReaderSlot* ReaderSlots::claim_free(std::uint32_t first, std::uint32_t thread) noexcept {
  const std::uint32_t used = size();
  for (std::uint32_t i = first; i < used; ++i) {
    const std::uint64_t owner = slots_[i].owner.load(std::memory_order_acquire);
    if (thread_of(owner) != 0) continue;
    if (ReaderSlot* slot = take_over(slots_[i], owner, thread)) return slot;
  }
  return nullptr;
}

// Tries a few slots, so that programs that start threads all the time do not collect slots.
ReaderSlot* ReaderSlots::claim_of_exited(std::uint32_t thread) noexcept {
  const std::uint32_t used = size();
  for (std::uint32_t tries = 0; tries < std::min(used, 8u); ++tries) {
    ReaderSlot& slot = slots_[(thread + tries) % used];
    const std::uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (thread_of(owner) == 0 || thread_of(owner) == k_being_freed || thread_exists(thread_of(owner))) continue;
    if (ReaderSlot* taken = take_over(slot, owner, thread)) return taken;
  }
  return nullptr;
}

bool ReaderSlots::free_if_exited(ReaderSlot& slot) noexcept {
  std::uint64_t owner = slot.owner.load(std::memory_order_acquire);
  const std::uint32_t thread = thread_of(owner);
  if (thread == 0 || thread == k_being_freed) return false;
  if (thread_exists(thread)) {
    // The owner may have exited without being reaped, like a main thread that ends before the others. Or another thread
    // may have the same id: one that has not looked anything up yet, or one of another process. Such a thread started
    // later than the slot was claimed.
    const auto status = read_thread_status(thread);
    if (!status) return false;
    const std::uint64_t claimed = ticks_since_boot(slot.claimed_at.load(std::memory_order_acquire));
    if (status->state != 'Z' && status->state != 'X' && status->start_ticks <= claimed) return false;
  }
  if (!slot.owner.compare_exchange_strong(owner, with_thread(owner, k_being_freed))) return false;
  clear(slot);
  slot.owner.store(with_thread(owner, 0), std::memory_order_release);
  return true;
}

bool ReaderSlots::drop_if_abandoned(const ReaderSlot& slot, Hold& hold) noexcept {
  NodeId node = hold.node.load(std::memory_order_acquire);
  NodeId answer = hold.answer.load(std::memory_order_acquire);
  const FramePosition position = hold.position();
  const std::uint32_t thread = thread_of(slot.owner.load(std::memory_order_acquire));
  if (position.unknown()) return false;
  const auto sp = read_blocked_stack_pointer(thread);
  if (!sp || frame_may_be_alive(position, *sp, slot.thread_locals.load(std::memory_order_relaxed))) return false;
  if (read_blocked_stack_pointer(thread) != sp || hold.position().hidden() != position.hidden()) {
    return false;
  }
  const bool node_dropped = node == 0 || hold.node.compare_exchange_strong(node, 0);
  return (answer == 0 || hold.answer.compare_exchange_strong(answer, 0)) && node_dropped;
}

void ReaderSlots::keep_only_own() noexcept {
  for (std::uint32_t i = 0; i < size(); ++i) {
    ReaderSlot& slot = slots_[i];
    const std::uint64_t owner = slot.owner.load(std::memory_order_relaxed);
    if (&slot == own_reader_slot) {
      slot.claimed_at.store(boot_time_ns(), std::memory_order_relaxed);
      slot.owner.store(next_owner(owner, this_thread_id()), std::memory_order_release);
    } else {
      clear(slot);
      slot.owner.store(with_thread(owner, 0), std::memory_order_release);
    }
  }
}

namespace {

/// Answers for a lookup that is disturbed again and again. The caller has the lock, so that only nodes that are marked
/// dead disturb this search, and these are finitely many.
void answer(std::uint32_t question, Hold& hold) noexcept {
  ProcedureIndex::Answer found;
  do {
    ProcedureIndex::Snapshot snapshot;
    found = registry.index.find(hold.pc.load(std::memory_order_relaxed), snapshot);
    hold.answer.exchange(found.node, std::memory_order_seq_cst);
  } while (found.node != 0 && registry.nodes[found.node].state.load(std::memory_order_seq_cst) != found.state.word());
  const std::uint32_t answered = (question & ~3u) | Hold::answered;
  if (!hold.question.compare_exchange_strong(question, answered, std::memory_order_seq_cst)) {
    hold.answer.store(0, std::memory_order_release);
  }
}

[[gnu::noinline]] void answer_all() noexcept {
  registry.questions.exchange(false, std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < registry.slots.size(); ++i) {
    registry.slots[i].any_hold([](Hold& hold) {
      const std::uint32_t question = hold.question.load(std::memory_order_seq_cst);
      if ((question & 3) == Hold::asked) answer(question, hold);
      return false;
    });
  }
}

}  // namespace

void answer_questions() noexcept {
  if (registry.questions.load(std::memory_order_acquire)) answer_all();
}

}  // namespace jitunwind

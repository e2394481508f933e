// The reader's side of the registry.

#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"

namespace jitunwind {

namespace {

using Kind = ProcedureIndex::Answer::Kind;

/// Returns no position for a hold that is not on this stack, since its address cannot be compared with frames.
/// AddressSanitizer moves variables to such places.
FramePosition position_of(const void* hold, std::uint64_t here) noexcept {
  constexpr std::uint64_t k_near = 1u << 20;
  const FramePosition position(reinterpret_cast<std::uintptr_t>(hold));
  return position.above(here) < k_near ? position : FramePosition();
}

/// The place of a hold among the reader slots. A null slot means that there is none.
struct Level {
  ReaderSlot* slot = nullptr;
  unsigned level = 0;
};

[[gnu::noinline]] Level enter(const void* hold) noexcept {
  ReaderSlot* const slot = registry_state.slots.own();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const unsigned level = slot == nullptr ? ReaderSlot::k_levels : slot->enter(position_of(hold, here), here);
  if (level == ReaderSlot::k_levels) return {};
  return {slot, level};
}

/// The second half of an attempt. Returns true if what find() answered was right at a moment within the attempt and its
/// node, if any, is held.
bool confirm(std::uint64_t pc, Hold& hold, const ProcedureIndex::Answer& answer,
             const ProcedureIndex::Snapshot& snapshot) noexcept {
  if (answer.kind == Kind::interfered) return false;
  if (answer.kind == Kind::found) {
    hold.node.exchange(answer.node, std::memory_order_seq_cst);
    // The hold is stored before the state is loaded (both seq_cst), so a writer that takes the node out either sees the
    // hold or has changed the state already.
    if (registry.nodes[answer.node].state.load(std::memory_order_seq_cst) != answer.state.word()) return false;
  }
  return registry.index.unchanged(pc, snapshot);
}

bool attempt(std::uint64_t pc, Hold& hold, ProcedureIndex::Answer& answer) noexcept {
  ProcedureIndex::Snapshot snapshot;
  answer = registry_state.index.find(pc, snapshot);
  return confirm(pc, hold, answer, snapshot);
}

/// An attempt fails only because of a registration made meanwhile, and a writer answers open questions before it makes
/// one. So once writers see the question, an attempt succeeds or the answer is there, and the loop ends.
ProcedureIndex::Answer attempt_with_question(std::uint64_t pc, Hold& hold) noexcept {
  const std::uint32_t number = (hold.question.load(std::memory_order_relaxed) >> 2) + 1;
  hold.pc.store(pc, std::memory_order_relaxed);
  hold.question.store(number << 2 | Hold::asked, std::memory_order_seq_cst);
  registry.questions.store(true, std::memory_order_seq_cst);
  ProcedureIndex::Answer answer;
  while (!attempt(pc, hold, answer)) {
    if (hold.question.load(std::memory_order_acquire) != (number << 2 | Hold::answered)) continue;
    const NodeId node = hold.answer.load(std::memory_order_relaxed);
    hold.node.exchange(node, std::memory_order_seq_cst);
    answer = {Kind::none};
    if (node != 0) answer = {Kind::found, node, NodeState(registry.nodes[node].state.load(std::memory_order_relaxed))};
    break;
  }
  hold.question.store(number << 2 | Hold::none, std::memory_order_seq_cst);
  hold.answer.store(0, std::memory_order_release);
  return answer;
}

}  // namespace

[[gnu::hot]] bool may_be_registered(std::uint64_t pc) noexcept {
  if (!registered_span.may_cover(pc)) return false;
  const ProcedureIndex& index = registry_state.index;
  ProcedureIndex::Snapshot snapshot;
  const Kind kind = index.find(pc, snapshot).kind;
  if (kind == Kind::found) return true;
  return (kind != Kind::none || !index.unchanged(pc, snapshot)) && ProcedureHold(pc).info() != nullptr;
}

ProcedureHold::ProcedureHold(std::uint64_t pc) noexcept {
  if (!registered_span.may_cover(pc)) return;
  ProcedureIndex::Snapshot snapshot;
  ProcedureIndex::Answer answer = registry.index.find(pc, snapshot);
  if (answer.kind == Kind::none && registry.index.unchanged(pc, snapshot)) return;

  const Level own = enter(this);
  failed_ = own.slot == nullptr;
  if (failed_) return;
  constexpr int k_attempts = 4;
  Hold& hold = own.slot->holds[own.level];
  bool right = confirm(pc, hold, answer, snapshot);
  for (int i = 1; i < k_attempts && !right; ++i) right = attempt(pc, hold, answer);
  if (!right) answer = attempt_with_question(pc, hold);
  if (answer.kind != Kind::found) {
    own.slot->leave(own.level);
    return;
  }
  keep(own.slot, own.level, {answer.state.registration(), answer.node});
}

ProcedureHold::ProcedureHold(RegistrationKey key) noexcept {
  if (!registry_state.nodes.contains(key.node)) return;
  const Level own = enter(this);
  failed_ = own.slot == nullptr;
  if (failed_) return;
  own.slot->publish(own.level, key.node);
  // The hold is stored before the state is loaded, as in confirm(): a writer that takes the node out sees the hold, or
  // has changed the state already.
  if (!registry_state.has(key)) {
    own.slot->leave(own.level);
    return;
  }
  keep(own.slot, own.level, key);
}

inline void ProcedureHold::keep(void* slot, std::uint32_t level, RegistrationKey key) noexcept {
  info_ = registry_state.nodes[key.node].info.load(std::memory_order_acquire);
  key_ = key;
  slot_ = slot;
  level_ = level;
}

std::uint64_t ProcedureHold::user_word() const noexcept {
  if (info_ == nullptr) return 0;
  const NodeState state(registry_state.nodes[key_.node].state.load(std::memory_order_relaxed));
  return state.has_user_word() ? *reinterpret_cast<const std::uint64_t*>(info_ + 1) : 0;
}

ProcedureHold::~ProcedureHold() {
  if (slot_ != nullptr) static_cast<ReaderSlot*>(slot_)->leave(level_);
}

bool still_registered(RegistrationKey key) noexcept {
  return registry_state.nodes.contains(key.node) && registry_state.has(key);
}

}  // namespace jitunwind

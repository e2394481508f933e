#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"

#include "jitunwind/dyn_info/registry/registry_state_p.h"

namespace jitunwind {

namespace {

/// Answers for a lookup that is disturbed again and again. The caller has the lock, so that only nodes that are marked
/// dead disturb this search, and these are finitely many.
void answer(std::uint32_t question, Hold& hold) noexcept {
  const RegistryState& registry = registry_state;
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

}  // namespace

void answer_questions() noexcept {
  RegistryState& registry = registry_state;
  if (!registry.questions.load(std::memory_order_acquire)) return;
  registry.questions.exchange(false, std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < registry.slots.size(); ++i) {
    registry.slots[i].any_hold([](Hold& hold) {
      const std::uint32_t question = hold.question.load(std::memory_order_seq_cst);
      if ((question & 3) == Hold::asked) answer(question, hold);
      return false;
    });
  }
}

}  // namespace jitunwind

// Who reads which procedure: each thread has a slot of its own, in which it notes the procedures it holds. Writers look
// through the slots, readers write to nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/directives/stack_evidence_p.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

/// One procedure held, or a question to the writers (docs/registry.md "Lookups").
struct Hold {
  /// A question counts up by 4: number << 2 | state.
  enum Question : std::uint32_t { none, asked, answered };

  std::atomic<NodeId> node{0};
  std::atomic<NodeId> answer{0};  ///< held like `node`; by the writer that answers
  std::atomic<std::uint32_t> question{0};
  std::atomic<std::uint64_t> pc{0};               ///< asked for
  std::atomic<std::uint64_t> hidden_position{0};  ///< of the frame that holds it

  FramePosition position() const noexcept {
    return FramePosition::from_hidden(hidden_position.load(std::memory_order_relaxed));
  }
};

/// Written by its owner, but for answers and for what writers do to slots of threads that are gone.
struct alignas(64) ReaderSlot {
  /// Holds nest: ALIAS chains, up to 9 deep, and handlers that interrupt a lookup.
  static constexpr std::uint32_t k_levels = 31;

  std::atomic<std::uint64_t> owner{0};          ///< number of owners so far << 32 | thread id, 0: free
  std::atomic<std::uint64_t> claimed_at{0};     ///< CLOCK_BOOTTIME, ns
  std::atomic<std::uint64_t> thread_locals{0};  ///< an address among the owner's
  std::atomic<std::uint16_t> depth{0};          ///< holds in use; for the owner and its signal handlers
  std::atomic<std::uint16_t> levels_used{0};    ///< holds that have ever been in use
  std::atomic<std::uint32_t> list_walks{0};     ///< odd: the owner walks the list beside the lock
  std::array<Hold, k_levels> holds{};

  /// Whether `is_it` is true of any hold that may be in use.
  template <class Function>
  bool any_hold(Function&& is_it) noexcept {
    const unsigned levels = levels_used.load(std::memory_order_seq_cst);
    return std::any_of(holds.begin(), holds.begin() + levels, is_it);
  }

  /// Takes the next hold for a frame at `position`; `here` is the stack pointer now. k_levels: all are in use.
  unsigned enter(FramePosition position, std::uint64_t here) noexcept;
  /// For the owner: the frame that has the hold was left by a jump, as a frame at `here` can tell.
  bool is_over(const Hold& hold, std::uint64_t here) const noexcept;
  /// Notes the node. What is read of it afterwards is ordered behind the note for all who look through the slots.
  void publish(unsigned level, NodeId node) noexcept { holds[level].node.exchange(node, std::memory_order_seq_cst); }
  void leave(unsigned level) noexcept {
    holds[level].node.store(0, std::memory_order_release);
    depth.store(static_cast<std::uint16_t>(level), std::memory_order_relaxed);
  }
};
static_assert(sizeof(Hold) == 32 && sizeof(ReaderSlot) == 1024);

class ReaderSlots {
 public:
  constexpr explicit ReaderSlots(ReaderSlot* first_block) noexcept : slots_(first_block) {}
  static constexpr unsigned k_first_bits = 6;  ///< of the number of slots in the first block

  /// The calling thread's slot; claimed on first use. Null: there are none left and no memory for more. Signal-safe.
  ReaderSlot* own() noexcept;
  /// The same, null where none was claimed.
  static ReaderSlot* find_own() noexcept;

  /// Has the next block mapped before it is needed, so that readers need no system call for memory.
  void make_ready() noexcept { (void)slots_.make(2 * std::uint64_t{size()} + (1u << k_first_bits)); }

  std::uint32_t size() const noexcept { return used_.load(std::memory_order_seq_cst); }
  ReaderSlot& operator[](std::uint32_t i) const noexcept { return slots_[i]; }

  /// Frees the slot if its owner has exited.
  static bool free_if_exited(ReaderSlot& slot) noexcept;
  /// Drops the hold if its owner, another thread, has left the frame that held it.
  static bool drop_if_abandoned(const ReaderSlot& slot, Hold& hold) noexcept;
  /// After fork, in the child: only the calling thread is left.
  void keep_only_own() noexcept;

 private:
  ReaderSlot* claim() noexcept;
  ReaderSlot* claim_free(std::uint32_t first, std::uint32_t thread) noexcept;
  ReaderSlot* claim_of_exited(std::uint32_t thread) noexcept;
  static ReaderSlot* take_over(ReaderSlot& slot, std::uint64_t owner, std::uint32_t thread) noexcept;

  std::atomic<std::uint32_t> used_{0};
  GrowingArray<ReaderSlot, k_first_bits, 16> slots_;
};

}  // namespace jitunwind

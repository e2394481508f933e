// The hazard pointers of readers: each thread has a slot of its own, in which it notes the procedures it holds. Writers
// scan the slots, and readers write to nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"

namespace jitunwind {

// The question whether a stack frame can still be active, judged from the present stack pointer of its thread.

// Facts that the kernel tells about another thread that shares this memory. It is a thread of this process, or of one
// that was started with CLONE_VM, as by vfork(), or that has started this one so. All functions are signal-safe.

/// Returns the kernel's id of the thread whose thread-local variables these are. That is the calling thread, or the
/// parent in a child that runs with its parent's variables (vfork).
std::uint32_t this_thread_id() noexcept;

/// Returns false if no thread has the id. The result is also true for a thread of an unrelated process:
/// read_thread_status() tells that it is another.
bool thread_exists(std::uint32_t thread) noexcept;

struct ThreadStatus {
  char state = 0;                 ///< 'Z' or 'X' if the thread has exited
  std::uint64_t start_ticks = 0;  ///< clock ticks since boot
};
/// Returns nothing if the kernel does not tell.
std::optional<ThreadStatus> read_thread_status(std::uint32_t thread) noexcept;

/// Converts a CLOCK_BOOTTIME to the unit of ThreadStatus::start_ticks, rounded down.
std::uint64_t ticks_since_boot(std::uint64_t boot_time_ns) noexcept;
std::uint64_t boot_time_ns() noexcept;

/// Returns the stack pointer of a thread of this process that is blocked in the kernel, or nothing if it runs or the
/// kernel does not tell.
std::optional<std::uint64_t> read_blocked_stack_pointer(std::uint32_t thread) noexcept;

/// An address in a stack frame, kept as its complement. Code that handles it thus leaves no word on the stack that
/// looks like a pointer to the frame.
class FramePosition {
 public:
  constexpr FramePosition() noexcept = default;
  constexpr explicit FramePosition(std::uint64_t address) noexcept : hidden_(~address) {}
  static constexpr FramePosition from_hidden(std::uint64_t hidden) noexcept {
    FramePosition position;
    position.hidden_ = hidden;
    return position;
  }

  constexpr std::uint64_t hidden() const noexcept { return hidden_; }
  /// The position is unknown: no frame is at address 0.
  constexpr bool unknown() const noexcept { return hidden_ == ~std::uint64_t{0}; }
  /// address - other; negative results wrap.
  constexpr std::uint64_t above(std::uint64_t other) const noexcept { return ~other - hidden_; }
  constexpr bool is_below(std::uint64_t other) const noexcept { return hidden_ > ~other; }

 private:
  std::uint64_t hidden_ = ~std::uint64_t{0};
};

/// Whether the frame can still be active while its thread's stack pointer is `sp`. False only if it was left for
/// certain: the stack pointer is above it, and no word on the stack from there on refers to the frame or below it.
/// While a signal handler runs on a stack of its own, the signal frame on that stack has the interrupted stack pointer,
/// which refers there. Work for which such a stack is too small runs on another one, and the search continues at the
/// place where the handler's stack was left. Other words may refer there by chance: the answer is then true, the safe
/// one. `thread_locals` is an address among the thread's: the C library puts them and its own pointers to the stack at
/// the stack's upper end, where the search stops. Signal-safe; reads the stack by system calls.
bool frame_may_be_alive(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept;

/// One hazard pointer, or a question to the writers (docs/registry.md "Lookups").
struct Hold {
  /// A question is number << 2 | state, and the number counts up.
  enum Question : std::uint32_t { none, asked, answered };

  std::atomic<NodeId> node{0};
  std::atomic<NodeId> answer{0};  ///< held like `node`; set by the writer that answers
  std::atomic<std::uint32_t> question{0};
  std::atomic<std::uint64_t> pc{0};               ///< the pc of the question
  std::atomic<std::uint64_t> hidden_position{0};  ///< position of the frame that holds it

  FramePosition position() const noexcept {
    return FramePosition::from_hidden(hidden_position.load(std::memory_order_relaxed));
  }
};

/// Only its owner writes a slot. The exceptions are answers, and what writers do to slots of threads that are gone.
struct alignas(64) ReaderSlot {
  /// Holds nest in ALIAS chains, up to 9 deep, and in handlers that interrupt a lookup.
  static constexpr std::uint32_t k_levels = 31;

  std::atomic<std::uint64_t> owner{0};          ///< number of owners so far << 32 | thread id, 0: free
  std::atomic<std::uint64_t> claimed_at{0};     ///< CLOCK_BOOTTIME, ns
  std::atomic<std::uint64_t> thread_locals{0};  ///< an address among the owner's thread-local variables
  std::atomic<std::uint16_t> depth{0};          ///< number of holds in use; for the owner and its signal handlers
  std::atomic<std::uint16_t> levels_used{0};    ///< number of holds that have ever been in use
  std::atomic<std::uint32_t> list_walks{0};     ///< odd: the owner walks the list beside the lock
  std::array<Hold, k_levels> holds{};

  /// Returns whether `is_it` is true of any hold that may be in use.
  template <class Function>
  bool any_hold(Function&& is_it) noexcept {
    const unsigned levels = levels_used.load(std::memory_order_seq_cst);
    return std::any_of(holds.begin(), holds.begin() + levels, is_it);
  }

  /// Takes the next hold for a frame at `position`; `here` is the stack pointer now. Returns k_levels if all are in
  /// use.
  [[gnu::always_inline]] unsigned enter(FramePosition position, std::uint64_t here) noexcept {
    const unsigned level = depth.load(std::memory_order_relaxed) == 0 ? 0 : free_level(here);
    if (level == k_levels) return k_levels;
    // A signal handler that comes from now on takes the next level.
    depth.store(static_cast<std::uint16_t>(level + 1), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    holds[level].hidden_position.store(position.hidden(), std::memory_order_relaxed);
    if (levels_used.load(std::memory_order_relaxed) <= level)
      levels_used.exchange(static_cast<std::uint16_t>(level + 1), std::memory_order_seq_cst);
    return level;
  }
  /// The lowest level above the holds that no jump has left.
  unsigned free_level(std::uint64_t here) noexcept;
  /// The owner asks from a frame at `here` whether a jump left the frame that has the hold.
  bool is_over(const Hold& hold, std::uint64_t here) const noexcept;
  /// Stores the hazard pointer. The exchange orders later reads of the node after the store, for all that scan the
  /// slots.
  void publish(unsigned level, NodeId node) noexcept { holds[level].node.exchange(node, std::memory_order_seq_cst); }
  void leave(unsigned level) noexcept {
    holds[level].node.store(0, std::memory_order_release);
    depth.store(static_cast<std::uint16_t>(level), std::memory_order_relaxed);
  }
};
static_assert(sizeof(Hold) == 32 && sizeof(ReaderSlot) == 1024);

/// The calling thread's, or null.
extern constinit thread_local ReaderSlot* own_reader_slot;

class ReaderSlots {
 public:
  constexpr explicit ReaderSlots(ReaderSlot* first_block) noexcept : slots_(first_block) {}
  static constexpr unsigned k_first_bits = 6;  ///< log2 of the number of slots in the first block

  /// Returns the calling thread's slot, which is claimed on first use, or null if none is left and there is no memory
  /// for more. Signal-safe.
  ReaderSlot* own() noexcept {
    if (own_reader_slot == nullptr) own_reader_slot = claim();
    return own_reader_slot;
  }
  /// Returns the calling thread's slot, or null if it has claimed none.
  static ReaderSlot* find_own() noexcept { return own_reader_slot; }

  /// Maps the next block before it is needed, so that readers need no system call for memory.
  void make_ready() noexcept { (void)slots_.make(2 * std::uint64_t{size()} + (1u << k_first_bits)); }

  std::uint32_t size() const noexcept { return used_.load(std::memory_order_seq_cst); }
  ReaderSlot& operator[](std::uint32_t i) const noexcept { return slots_[i]; }

  /// Frees the slot if its owner has exited.
  static bool free_if_exited(ReaderSlot& slot) noexcept;
  /// Drops the hold if its owner, another thread, has left the frame that held it.
  static bool drop_if_abandoned(const ReaderSlot& slot, Hold& hold) noexcept;
  /// Frees the slots of all other threads in a forked child, which has only the calling thread.
  void keep_only_own() noexcept;

 private:
  ReaderSlot* claim() noexcept;
  ReaderSlot* claim_free(std::uint32_t first, std::uint32_t thread) noexcept;
  ReaderSlot* claim_of_exited(std::uint32_t thread) noexcept;
  static ReaderSlot* take_over(ReaderSlot& slot, std::uint64_t owner, std::uint32_t thread) noexcept;

  std::atomic<std::uint32_t> used_{0};
  GrowingArray<ReaderSlot, k_first_bits, 16> slots_;
};

/// The holder of the writers' lock calls it before each change that makes lookups start again.
void answer_questions() noexcept;

}  // namespace jitunwind

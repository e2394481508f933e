// Each registered procedure has a node. Nodes live in type-stable memory, which stays nodes for ever, so that a lookup
// may look at a node that was cancelled, or made into another procedure's, and notice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"

namespace jitunwind {

/// The number of a node; 0 means none.
using NodeId = std::uint32_t;

/// The state of a node in one word: registration number << 7 | user's word << 6 | size class << 2 | life. Registration
/// numbers count up from 1 and never repeat, so the number tells a node from what it was before. A newer procedure has
/// a larger one.
class NodeState {
 public:
  enum class Life : std::uint8_t { free, building, live, dead };

  constexpr NodeState() noexcept = default;
  constexpr explicit NodeState(std::uint64_t word) noexcept : word_(word) {}
  constexpr NodeState(std::uint64_t registration, unsigned size_class, Life life, bool has_user_word = false) noexcept
      : word_(registration << 7 | (has_user_word ? 1u << 6 : 0) | size_class << 2 | static_cast<unsigned>(life)) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::uint64_t registration() const noexcept { return word_ >> 7; }
  constexpr unsigned size_class() const noexcept { return (word_ >> 2) & 15; }
  constexpr Life life() const noexcept { return static_cast<Life>(word_ & 3); }
  /// Returns whether a word follows the descriptor, as Behind::user_word says.
  constexpr bool has_user_word() const noexcept { return (word_ >> 6 & 1) != 0; }
  constexpr bool live() const noexcept { return life() == Life::live; }
  constexpr NodeState with(Life life) const noexcept {
    return NodeState((word_ & ~std::uint64_t{3}) | static_cast<unsigned>(life));
  }

 private:
  std::uint64_t word_ = 0;
};

/// Lookups read `state`, `start`, `end` and `next` at any time. A writer that makes a node writes the state (building),
/// then the others, then the state (live). After that only the life and the links change, until the node is made into
/// another one.
struct alignas(64) ProcedureNode {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> start{0};
  std::atomic<std::uint64_t> end{0};
  std::atomic<unw_dyn_info_t*> info{nullptr};
  std::array<std::atomic<std::uint32_t>, 2> next{};      ///< links of procedure_index_p.h, one for each cell
  std::array<std::atomic<std::uint32_t>, 2> previous{};  ///< back links, which only writers use
  std::atomic<NodeId> list_next{0};                      ///< order of the list for other processes
  std::atomic<NodeId> list_previous{0};
  std::atomic<std::uint32_t> batch{0};  ///< batch with which it was retired; 0: none
  NodeId batch_next = 0;                ///< next node of the same batch
};
static_assert(sizeof(ProcedureNode) == 64);

/// The node of a descriptor, and the state in which it was found.
struct RegisteredNode {
  NodeId node = 0;
  NodeState state{};
};

/// The pool of nodes. Anyone may look up a number at any time; only the holder of the writers' lock takes nodes and
/// gives them back. Nodes lie side by side if their descriptors do. Then the address of a descriptor tells its node,
/// and nobody has to wait for the descriptor to come to the node (docs/registry.md "Which node").
class NodePool {
 public:
  constexpr NodePool() noexcept = default;

  /// Precondition: `id` was taken once.
  ProcedureNode& operator[](NodeId id) const noexcept { return nodes_[id - 1]; }
  /// Returns whether `id`, which may be any number, is the number of a node.
  bool contains(std::uint64_t id) const noexcept { return id != 0 && id < fresh_.load(std::memory_order_acquire); }

  /// Returns true if the pointer is neither null nor misaligned.
  static bool can_bind(const unw_dyn_info_t* info) noexcept {
    return info != nullptr && reinterpret_cast<std::uintptr_t>(info) % alignof(unw_dyn_info_t) == 0;
  }
  /// Returns the node of the descriptor, if it has one. O(1). It reads at most `prev` of the descriptor. `prev` may
  /// hold anything, and counts only if the node names the descriptor, too.
  RegisteredNode find(unw_dyn_info_t* info) const noexcept;
  /// Makes the node and the descriptor name each other.
  static void bind(NodeId id, ProcedureNode& node, unw_dyn_info_t* info) noexcept;
  /// Notes, in a descriptor that has a node, where `newer` is, which comes before it in the list; null means nothing.
  static void note_newer(unw_dyn_info_t* info, const unw_dyn_info_t* newer) noexcept;
  /// Returns what was noted last if `info` has ever had a node, or null. Nobody may rely on that address.
  static const void* probably_newer(unw_dyn_info_t* info) noexcept;

  /// Whether there are more than the processor's caches have anyway. Else prefetching is of no use.
  bool are_many() const noexcept { return slab_of_page_.load(std::memory_order_relaxed) != nullptr; }

  /// Prefetches the node that the descriptor probably has or will have. It does not read the descriptor.
  void prefetch(const unw_dyn_info_t* info) const noexcept {
    if (const NodeId id = place(info); id != 0) __builtin_prefetch(&(*this)[id], 1);
  }

  /// Does what prefetch() does, and prefetches what take() will read.
  void prefetch_taking(const unw_dyn_info_t* info) const noexcept {
    const NodeId id = place(info);
    if (id == 0) return;
    __builtin_prefetch(&(*this)[id], 1);
    __builtin_prefetch(&slabs_[(id - 1) / k_slab_size], 1);
  }

  /// Returns 0 if there is no memory.
  NodeId take(const unw_dyn_info_t* info) noexcept;
  void give_back(NodeId id) noexcept;
  std::size_t bytes() const noexcept {
    return (fresh_.load(std::memory_order_relaxed) - 1) / k_slab_size *
           (k_slab_size * sizeof(ProcedureNode) + sizeof(Slab));
  }

 private:
  static constexpr unsigned k_set_aside = 32;
  static constexpr NodeId k_slab_size = 64;
  /// Fewer nodes than this are in the processor's caches anyway.
  static constexpr NodeId k_fewest_placed = 1u << 12;
  static constexpr std::size_t k_table_size = std::size_t{1} << 16;

  /// Neighbouring nodes, as many as there are bits. A slab is named by its number + 1; 0 means none.
  struct Slab {
    std::uint64_t free;  ///< bit i is set if its node i is free
    std::uint32_t next;  ///< the next slab that has free nodes
    std::uint32_t previous;
  };
  /// The slab of each page, where a page is the place of as many descriptors. Pages with the same remainder share
  /// entries.
  using SlabOfPage = std::array<std::atomic<std::uint32_t>, k_table_size>;

  /// Descriptors do not overlap, so each has a number of its own.
  static std::uint64_t number_of(const unw_dyn_info_t* info) noexcept {
    return reinterpret_cast<std::uintptr_t>(info) / sizeof(unw_dyn_info_t);
  }
  static std::atomic<std::uint32_t>& slab_of(std::uint64_t number, SlabOfPage& table) noexcept {
    return table[number / k_slab_size % k_table_size];
  }
  /// Returns the descriptor's node if it is in the slab of its page, or 0 if that page has no slab.
  NodeId place(const unw_dyn_info_t* info) const noexcept {
    SlabOfPage* const table = slab_of_page_.load(std::memory_order_acquire);
    if (table == nullptr) return 0;
    const std::uint64_t number = number_of(info);
    const std::uint32_t slab = slab_of(number, *table).load(std::memory_order_relaxed);
    return slab == 0 ? 0 : (slab - 1) * k_slab_size + static_cast<NodeId>(number % k_slab_size) + 1;
  }

  /// Returns a slab for a page that has none, or 0 if there is none for now.
  std::uint32_t slab_for_page() noexcept;
  NodeId take_from(std::uint32_t slab, unsigned node) noexcept;
  bool open_slab() noexcept;
  void link(std::uint32_t slab) noexcept;

  GrowingArray<ProcedureNode, 10, 20> nodes_;  // less than 2^30, since links of the index need one bit more
  std::atomic<NodeId> fresh_{1};               // the first number that is in no slab yet
  std::atomic<SlabOfPage*> slab_of_page_{nullptr};
  // Only the holder of the lock uses these.
  GrowingArray<Slab, 8, 17, Pages::small> slabs_;
  std::uint32_t slabs_used_ = 0;
  std::uint32_t with_free_ = 0;  // first slab that has free nodes
  NodeId taken_ = 0;
  // A node that is given back is set aside for a while: a lookup that is at a node made anew has to start again.
  std::array<NodeId, k_set_aside> set_aside_{};
  unsigned next_set_aside_ = 0;
};

}  // namespace jitunwind

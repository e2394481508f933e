// One node a registered procedure. Nodes live in memory that stays nodes for ever, so that a lookup may look at one
// that was cancelled, or made into another procedure's, and notice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"

namespace jitunwind {

/// A node by number; 0: none.
using NodeId = std::uint32_t;

/// What a node is now, in one word: registration number << 7 | user's word << 6 | size class << 2 | life. Registration
/// numbers count up from 1 and never repeat, so that the number tells a node from what it was before. Newer procedures
/// have larger ones.
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
  /// The word behind the descriptor is what Behind::user_word says.
  constexpr bool has_user_word() const noexcept { return (word_ >> 6 & 1) != 0; }
  constexpr bool live() const noexcept { return life() == Life::live; }
  constexpr NodeState with(Life life) const noexcept {
    return NodeState((word_ & ~std::uint64_t{3}) | static_cast<unsigned>(life));
  }

 private:
  std::uint64_t word_ = 0;
};

/// `state`, `start`, `end` and `next` are read by lookups at any time. They are written in this order when a node is
/// made: state (building), the others, state (live); and stay as they are, but for the life, until the node is made
/// into another one.
struct alignas(64) ProcedureNode {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> start{0};
  std::atomic<std::uint64_t> end{0};
  std::atomic<unw_dyn_info_t*> info{nullptr};
  std::array<std::atomic<std::uint32_t>, 2> next{};      ///< links of procedure_index_p.h, one a cell
  std::array<std::atomic<std::uint32_t>, 2> previous{};  ///< the same, of the writers
  std::atomic<NodeId> list_next{0};                      ///< order of the list for other processes
  std::atomic<NodeId> list_previous{0};
  std::atomic<std::uint32_t> batch{0};  ///< retired with this batch; 0: none
  NodeId batch_next = 0;                ///< next of the same batch
};
static_assert(sizeof(ProcedureNode) == 64);

/// The node that a descriptor says is its, and what it was then.
struct RegisteredNode {
  NodeId node = 0;
  NodeState state{};
};

/// The nodes. Numbers are looked up by anyone at any time; taking and giving back is for the holder of the writers'
/// lock. Where descriptors lie side by side, so do their nodes: then the address of a descriptor tells its node, and
/// nobody has to wait for the descriptor to come to the node (docs/registry.md "Which node").
class NodePool {
 public:
  constexpr NodePool() noexcept = default;

  /// Precondition: `id` was taken once.
  ProcedureNode& operator[](NodeId id) const noexcept { return nodes_[id - 1]; }
  /// Any number: whether it is one of a node.
  bool contains(std::uint64_t id) const noexcept { return id != 0 && id < fresh_.load(std::memory_order_acquire); }

  /// Neither null nor misaligned.
  static bool can_bind(const unw_dyn_info_t* info) noexcept {
    return info != nullptr && reinterpret_cast<std::uintptr_t>(info) % alignof(unw_dyn_info_t) == 0;
  }
  /// The node of the descriptor; none when it has none. O(1). Reads nothing of it but `prev`, if that, which may be
  /// anything: it is believed only when the node says the same.
  RegisteredNode find(unw_dyn_info_t* info) const noexcept;
  /// Makes the two each other's.
  void bind(NodeId id, unw_dyn_info_t* info) noexcept;
  /// Leaves word in a descriptor that has a node where `newer` is, which comes before it in the list; null: nothing.
  static void note_newer(unw_dyn_info_t* info, const unw_dyn_info_t* newer) noexcept;
  /// What was noted last, if `info` has ever had a node: an address that nobody must rely on. Null: nothing.
  static const void* probably_newer(unw_dyn_info_t* info) noexcept;

  /// Has the memory fetched of the node that the descriptor probably has or will have, without a look at it.
  void prefetch(const unw_dyn_info_t* info) const noexcept {
    if (const NodeId id = place(info); id != 0) __builtin_prefetch(&(*this)[id], 1);
  }

  /// The same, and what take() will look at.
  void prefetch_taking(const unw_dyn_info_t* info) const noexcept {
    const NodeId id = place(info);
    if (id == 0) return;
    __builtin_prefetch(&(*this)[id], 1);
    __builtin_prefetch(&slabs_[(id - 1) / k_slab_size], 1);
  }

  /// 0: out of memory.
  NodeId take(const unw_dyn_info_t* info) noexcept;
  void give_back(NodeId id) noexcept;
  std::size_t bytes() const noexcept {
    return (fresh_.load(std::memory_order_relaxed) - 1) / k_slab_size *
           (k_slab_size * sizeof(ProcedureNode) + sizeof(Slab));
  }

 private:
  static constexpr unsigned k_set_aside = 32;
  static constexpr NodeId k_slab_size = 64;
  /// Fewer nodes are in the processor's caches anyway.
  static constexpr NodeId k_fewest_placed = 1u << 12;
  static constexpr std::size_t k_table_size = std::size_t{1} << 16;

  /// Neighbouring nodes, as many as there are bits. By number + 1; 0: none.
  struct Slab {
    std::uint64_t free;  ///< bit i: its node i is
    std::uint32_t next;  ///< among those that have free ones
    std::uint32_t previous;
  };
  /// The slab of a page, which is the place of as many descriptors. Pages with the same remainder share entries.
  using SlabOfPage = std::array<std::atomic<std::uint32_t>, k_table_size>;

  /// Descriptors do not overlap, so each has a number of its own.
  static std::uint64_t number_of(const unw_dyn_info_t* info) noexcept {
    return reinterpret_cast<std::uintptr_t>(info) / sizeof(unw_dyn_info_t);
  }
  static std::atomic<std::uint32_t>& slab_of(std::uint64_t number, SlabOfPage& table) noexcept {
    return table[number / k_slab_size % k_table_size];
  }
  /// Where the node is if it is in the slab of its page. 0: that has none.
  NodeId place(const unw_dyn_info_t* info) const noexcept {
    SlabOfPage* const table = slab_of_page_.load(std::memory_order_acquire);
    if (table == nullptr) return 0;
    const std::uint64_t number = number_of(info);
    const std::uint32_t slab = slab_of(number, *table).load(std::memory_order_relaxed);
    return slab == 0 ? 0 : (slab - 1) * k_slab_size + static_cast<NodeId>(number % k_slab_size) + 1;
  }

  /// For a page that has none. 0: none for now.
  std::uint32_t slab_for_page() noexcept;
  NodeId take_from(std::uint32_t slab, unsigned node) noexcept;
  bool open_slab() noexcept;
  void link(std::uint32_t slab) noexcept;

  GrowingArray<ProcedureNode, 10, 20> nodes_;  // less than 2^30: links of the index need one bit beside the number
  std::atomic<NodeId> fresh_{1};               // in no slab yet, as all above it
  std::atomic<SlabOfPage*> slab_of_page_{nullptr};
  // For the holder of the lock.
  GrowingArray<Slab, 8, 17, Pages::small> slabs_;
  std::uint32_t slabs_used_ = 0;
  std::uint32_t with_free_ = 0;  // first of those that have free nodes
  NodeId taken_ = 0;
  // A node that is given back is set aside for a while: a lookup that stands on a node made anew has to start again.
  std::array<NodeId, k_set_aside> set_aside_{};
  unsigned next_set_aside_ = 0;
};

}  // namespace jitunwind

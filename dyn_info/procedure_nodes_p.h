// One node a registered procedure. Nodes live in memory that stays nodes for ever, so that a lookup may look at one
// that was cancelled, or made into another procedure's, and notice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dyn_info/libunwind-dynamic.h"
#include "dyn_info/mapped_memory_p.h"

namespace jitunwind {

/// A node by number; 0: none.
using NodeId = std::uint32_t;

/// What a node is now, in one word: registration number << 6 | size class << 2 | life. Registration numbers count up
/// from 1 and never repeat, so that the number tells a node from what it was before. Newer procedures have larger ones.
class NodeState {
 public:
  enum class Life : std::uint8_t { free, building, live, dead };

  constexpr NodeState() noexcept = default;
  constexpr explicit NodeState(std::uint64_t word) noexcept : word_(word) {}
  constexpr NodeState(std::uint64_t registration, unsigned size_class, Life life) noexcept
      : word_(registration << 6 | size_class << 2 | static_cast<unsigned>(life)) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::uint64_t registration() const noexcept { return word_ >> 6; }
  constexpr unsigned size_class() const noexcept { return (word_ >> 2) & 15; }
  constexpr Life life() const noexcept { return static_cast<Life>(word_ & 3); }
  constexpr bool live() const noexcept { return life() == Life::live; }
  constexpr NodeState with(Life life) const noexcept { return {registration(), size_class(), life}; }

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
  NodeId batch_next = 0;                ///< next of the same batch; of a free node: next free one
};
static_assert(sizeof(ProcedureNode) == 64);

/// The node that a descriptor says is its, and what it was then.
struct RegisteredNode {
  NodeId node = 0;
  NodeState state{};
};

/// The nodes. Numbers are looked up by anyone at any time; taking and giving back is for the holder of the writers'
/// lock.
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
  /// The node of the descriptor; none when it has none. O(1). Reads nothing of it but `prev`, which may be anything: it
  /// is believed only when the node says the same.
  RegisteredNode find(unw_dyn_info_t* info) const noexcept;
  /// Makes the two each other's.
  void bind(NodeId id, unw_dyn_info_t* info) noexcept;

  /// 0: out of memory.
  NodeId take() noexcept;
  void give_back(NodeId id) noexcept;
  std::size_t bytes() const noexcept { return (fresh_.load(std::memory_order_relaxed) - 1) * sizeof(ProcedureNode); }

 private:
  static constexpr unsigned k_rest = 32;

  GrowingArray<ProcedureNode, 10, 20> nodes_;  // less than 2^30: links of the index need one bit beside the number
  std::atomic<NodeId> fresh_{1};               // never taken yet, as all above it
  NodeId free_ = 0;
  // A node that is given back rests for a while: a lookup that stands on a node made anew has to start again.
  std::array<NodeId, k_rest> resting_{};
  unsigned next_resting_ = 0;
};

}  // namespace jitunwind

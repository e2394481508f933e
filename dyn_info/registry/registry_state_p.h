// The one registry of the process: its parts, and what writers and lookups share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_index_p.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/dyn_info/registry/take_out_p.h"
#include "jitunwind/unwind_core/kept/code_changes_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {

// The list of procedures that other processes read (dyn_info/libunwind-dynamic.h, unw_dyn_info_list_t): its head, the
// ELF note that leads to the head, and the changes. The chain is valid after every single store of a change.

/// Returns the head. Signal-safe.
unw_dyn_info_list_t& procedure_list_head() noexcept;

/// The order among the nodes is the truth for writers; the descriptors' own `next` is its image for readers. Only the
/// holder of the writers' lock calls the members that do not say otherwise.
class ProcedureList {
 public:
  constexpr explicit ProcedureList(const NodePool& nodes) noexcept : nodes_(nodes) {}

  /// Writers call these around a change of any number of procedures. `generation` is odd in between.
  void begin_change() noexcept;
  void end_change() noexcept;

  /// Prefetches the descriptors that unlinking this one would probably write to. Needs no lock.
  static void prefetch_neighbours(unw_dyn_info_t* info) noexcept;

  void push_front(NodeId id, ProcedureNode& node) noexcept;
  /// The descriptor keeps its `next`, since readers may be at it.
  void unlink(const ProcedureNode& node) noexcept;
  NodeId first() const noexcept { return first_; }

  /// Takes a chain of dead nodes (batch_next) out of the descriptors' image of the order, though not out of the order
  /// itself. Another thread, not the caller, holds the lock. Precondition: nothing that the list leads to is reclaimed
  /// meanwhile.
  void bend_around(NodeId batch) const noexcept;

 private:
  bool is_live(NodeId id) const noexcept;
  void skip_dead(unw_dyn_info_t*& place) const noexcept;
  void skip_dead_behind(NodeId id) const noexcept;

  const NodePool& nodes_;
  NodeId first_ = 0;
  std::atomic<NodeId> being_pushed_{0};
};

struct RegistryState {
  constexpr RegistryState() noexcept;

  // The first members, which the dynamic linker writes to, stand together.
  ProcedureList list{nodes};  ///< only the holder of the lock uses it
  RetiredBatches batches;
  ReaderSlots slots;
  NodePool nodes;
  ProcedureIndex index{nodes};
  DerivedRecords derived;
  /// True if a lookup has asked a question since questions were last answered.
  alignas(64) std::atomic<bool> questions{false};

  CodeChanges changes;

  WriterLock lock;
  std::uint64_t last_registration = 0;  ///< only the holder of the lock uses it

  std::atomic<std::size_t> registered{0};

  /// Whether it is still registered. Precondition: the node was taken once. One load, in the order of holds.
  bool has(RegistrationKey key) const noexcept {
    const NodeState state(nodes[key.node].state.load(std::memory_order_seq_cst));
    return state.live() && state.registration() == key.registration;
  }

  std::atomic<std::uint64_t> bypasses{0};  ///< number begun so far
  std::atomic<std::uint32_t> retiring{0};  ///< threads that are marking nodes dead without the lock
};

/// It is constant-initialised and never destroyed, so constructors and destructors of static objects may use it.
extern constinit RegistryState registry_state;
[[maybe_unused]] static constexpr RegistryState& registry = registry_state;

/// Logs "register 0x1000-0x2000 name" if JITUNWIND_LOG asks for it, and checks the descriptions if JITUNWIND_CHECK
/// does. It comes before the registration, while the caller vouches for the descriptors. Error: JITUNWIND_CHECK refuses
/// it, with code_disagrees or a code of validate().
Status look_at_new(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept;
/// Whether look_at_new() has anything to do. Takes one load.
inline bool looks_at_new() noexcept {
  constexpr auto k_registry = static_cast<std::uint32_t>(LogTopic::registry);
  return (log_words() & (k_registry | k_check_warns | k_check_refuses)) != 0;
}
/// Logs "cancel 0x1000-0x2000" for those that are registered, from what the registry knows of them.
void log_those_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept;
inline void log_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept {
  if (logs(LogTopic::registry)) [[unlikely]]
    log_those_to_be_taken_out(how, batch);
}
/// Counts and logs the error, and returns it.
Error note_refused(const char* what, const Error& error) noexcept;

}  // namespace jitunwind

// The writers' side of the registry.
#include "jitunwind/dyn_info/registry/registry.h"

#include <pthread.h>

#include <array>
#include <optional>

#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/dyn_info/registry/take_out_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

namespace {

[[gnu::section(".bss.large")]] constinit std::array<ReaderSlot, 1u << ReaderSlots::k_first_bits> first_slots;
[[gnu::section(".bss.large")]] constinit std::array<RetiredBatch, 1u << RetiredBatches::k_first_bits> first_batches;
constinit thread_local bool fork_has_lock = false;

}  // namespace

constinit thread_local std::atomic<bool> thread_is_writing{false};
constexpr RegistryState::RegistryState() noexcept : batches(first_batches.data()), slots(first_slots.data()) {}
[[gnu::section(".data.large")]] constinit RegistryState registry_state;
constinit RegisteredSpan registered_span;

namespace {

using Life = NodeState::Life;

Error error_at(ErrorCode code, const unw_dyn_info_t* di, const char* what) noexcept {
  return {code, reinterpret_cast<std::uintptr_t>(di), what};
}

// Registration. The caller of these functions holds the lock.

// These functions write an error to the caller's variable. gcc would copy an optional error as a whole even where there
// is none, and that load would stall until the smaller stores to it are done (12 of 49 ns a registration).

/// Does everything that can fail. Neither the list nor the index knows the node yet. Returns 0 and sets `error` on
/// failure.
NodeId prepare(unw_dyn_info_t* di, Behind behind, ProcedureIndex::Cells& cells, Error& error) noexcept {
  if (registry.nodes.find(di).node != 0) {
    error = error_at(ErrorCode::already_registered, di, "registered, or retired and not reclaimed yet");
    return 0;
  }
  const NodeId id = registry.index.reserve(di->start_ip, di->end_ip, cells) ? registry.nodes.take(di) : 0;
  if (id == 0 || !registry.derived.make_ready(id, di->end_ip - di->start_ip)) {
    if (id != 0) registry.nodes.give_back(id);
    registry.index.unreserve(di->start_ip, di->end_ip);
    trim_index();
    error = error_at(ErrorCode::out_of_memory, di, "no memory for the registry");
    return 0;
  }
  ProcedureNode& node = registry.nodes[id];
  const bool has_user_word = behind == Behind::user_word;
  node.state.store(NodeState(++registry.last_registration, cells.size_class, Life::building, has_user_word).word(),
                   std::memory_order_release);
  node.start.store(di->start_ip, std::memory_order_release);
  node.end.store(di->end_ip, std::memory_order_release);
  node.batch.store(0, std::memory_order_relaxed);
  node.batch_next = 0;
  registry.derived.set_list(id, list_of(*di));
  NodePool::bind(id, node, di);
  return id;
}

void put_in(NodeId id, const ProcedureIndex::Cells& cells) noexcept {
  ProcedureNode& node = registry.nodes[id];
  const NodeState state(node.state.load(std::memory_order_relaxed));
  answer_questions();
  node.state.store(state.with(Life::live).word(), std::memory_order_release);
  registry.list.push_front(id, node);
  registry.index.insert(id, node, cells);
  registry.changes.count(node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed));
  registry.registered.store(registry.registered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Frees prepared nodes, which batch_next links.
[[gnu::cold]] void free_all(NodeId first) noexcept {
  for (NodeId id = first; id != 0;) {
    const ProcedureNode& node = registry.nodes[id];
    const NodeId next = node.batch_next;
    registry.index.unreserve(node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed));
    trim_index();
    free_node(id);
    id = next;
  }
}

/// Returns false and sets `error` on failure.
bool put_in_all(std::span<unw_dyn_info_t* const> batch, Behind behind, Error& error) noexcept {
  NodeId first = 0;
  NodeId last = 0;
  ProcedureIndex::Cells cells;  // of the last procedure, which is mostly the only one
  for (unw_dyn_info_t* di : batch) {
    const NodeId id = prepare(di, behind, cells, error);
    if (id == 0) {
      free_all(first);
      return false;
    }
    (last == 0 ? first : registry.nodes[last].batch_next) = id;
    last = id;
  }
  registry.list.begin_change();
  for (NodeId id = first; id != last;) {
    const NodeId next = registry.nodes[id].batch_next;  // read before the node is live: retire may change it then
    put_in(id, registry.index.cells(registry.nodes[id]));
    id = next;
  }
  if (last != 0) put_in(last, cells);
  registry.list.end_change();
  return true;
}

// Handlers of fork. The child has one thread, and the work of all others stops where it is.

[[gnu::cold]] void before_fork() noexcept {
  // If a signal handler that interrupted a writer forks, this thread may have the lock already.
  if (WritingScope::active()) return;
  WritingScope::set(true);
  observers.lock.lock();
  registry.lock.lock();
  fork_has_lock = true;
}

[[gnu::cold]] void after_fork() noexcept {
  if (!fork_has_lock) return;
  fork_has_lock = false;
  (void)unlock(nullptr);
  (void)observers.lock.unlock();
  WritingScope::set(false);
}

[[gnu::cold]] void after_fork_in_child() noexcept {
  registry.slots.keep_only_own();
  if (fork_has_lock) {
    observers.lock.forget_others();
    registry.lock.forget_others();
    take_out_orphans();
  }
  after_fork();
}

constinit std::atomic<bool> started{false};

[[gnu::cold, gnu::noinline]] bool start_once(Error& error) noexcept {
  if (started.exchange(true)) return true;
  // These handlers are added before the registry's own, because those before a fork run in reverse order: fork first
  // waits for writers, which may wait for a thread that lists objects.
  watch_forks_of_object_list();
  if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) {
    started.store(false);
    error = {ErrorCode::out_of_memory, 0, "no memory for the fork handlers"};
    return false;
  }
  attach_by_environment();
  return true;
}

bool start(Error& error) noexcept { return started.load(std::memory_order_relaxed) || start_once(error); }

/// Returns null if the range is usable.
const char* why_no_range(const unw_dyn_info_t& di) noexcept {
  if (di.start_ip >= di.end_ip) return "empty or inverted range";
  // If pointers are shorter than words of descriptors, C extends the sign of a pointer that is cast to a word.
  if (static_cast<std::uintptr_t>(di.end_ip - 1) != di.end_ip - 1)
    return "address of more bits than this CPU has; cast pointers to uintptr_t first";
  return nullptr;
}

bool are_usable(std::span<unw_dyn_info_t* const> batch, Error& error) noexcept {
  for (const unw_dyn_info_t* di : batch) {
    if (!NodePool::can_bind(di)) {
      error = error_at(ErrorCode::invalid_argument, di, "null or misaligned descriptor");
      return false;
    }
    if (const char* const why = why_no_range(*di)) {
      error = error_at(ErrorCode::e_range, di, why);
      return false;
    }
  }
  return true;
}

Error not_registered(const unw_dyn_info_t* di) noexcept {
  return error_at(ErrorCode::not_registered, di, "descriptor is not registered");
}

Error read_by_caller(const unw_dyn_info_t* di) noexcept {
  return error_at(ErrorCode::in_signal_handler, di, "the calling thread is inside a lookup that holds the descriptor");
}

BatchId take_batch(void (*on_reclaimed)(void*), void* argument) noexcept {
  const BatchId id = registry.batches.take();
  if (id == 0) return 0;
  RetiredBatch& batch = registry.batches[id];
  batch.blocking_slot = RetiredBatch::k_no_slot;
  batch.checks = 0;
  batch.on_reclaimed = on_reclaimed;
  batch.argument = argument;
  return id;
}

std::uint32_t retire_with_lock(std::span<unw_dyn_info_t* const> procedures, BatchId id) noexcept {
  const std::uint32_t skipped = collect(procedures, id);
  if (registry.batches[id].first != 0 || procedures.empty()) registry.batches.push_pending(id);
  (void)unlock(nullptr);
  return skipped;
}

/// Waits for each procedure on its own, where there is no batch record to wait for all at once.
[[gnu::cold]] Status cancel_one_by_one(std::span<unw_dyn_info_t* const> batch) noexcept {
  Status all = Done{};
  for (unw_dyn_info_t* di : batch)
    if (!cancel_procedure(di) && all) all = not_registered(di);
  return all;
}

bool register_with_lock(std::span<unw_dyn_info_t* const> batch, Behind behind, Due& due, Error& error) noexcept {
  const WritingScope scope;
  if (!are_usable(batch, error) || !start(error)) return false;
  attach_system_unwinder();
  registry.lock.lock();
  registry.slots.make_ready();
  const bool done = put_in_all(batch, behind, error);
  (void)unlock(&due);
  return done;
}

bool is_behind(NodeState state, Behind behind) noexcept {
  return state.has_user_word() == (behind == Behind::user_word);
}

/// `behind`: this call cancels only procedures that were registered so; the others count as not registered.
[[gnu::noinline]] Status cancel(unw_dyn_info_t* di, std::optional<Behind> behind) noexcept {
  if (WritingScope::active()) return note_refused("cancel", refused_to_interrupter());
  if (!NodePool::can_bind(di)) return note_refused("cancel", not_registered(di));
  log_to_be_taken_out("cancel", {&di, 1});
  const bool are_many = registry.nodes.are_many();
  if (are_many) {
    registry.nodes.prefetch(di);
    ProcedureList::prefetch_neighbours(di);
  }
  const RegisteredNode found = registry.nodes.find(di);
  if (!found.state.live() || (behind && !is_behind(found.state, *behind)))
    return note_refused("cancel", not_registered(di));
  if (are_many) prefetch_neighbours(found.node);
  if (own_thread_holds(found.node)) return note_refused("cancel", read_by_caller(di));
  Due due;
  bool taken = false;
  {
    const WritingScope scope;
    registry.lock.lock();
    taken = mark_dead(found);
    if (taken) {
      take_out({found.node, 0}, due);
    } else {
      (void)unlock(&due);
    }
  }
  due.run();
  if (!taken) return note_refused("cancel", not_registered(di));
  count_event(Counter::procedure_cancelled);
  if (observers.any()) tell_cancelled({&di, 1});
  return Done{};
}

}  // namespace

bool is_writing() noexcept { return WritingScope::active(); }

Status register_procedures(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept {
  if (WritingScope::active()) return note_refused("register", refused_to_interrupter());
  if (looks_at_new()) [[unlikely]]
    if (const Status allowed = look_at_new(batch, behind); !allowed) return note_refused("register", allowed.error());
  if (batch.size() == 1) registry.nodes.prefetch_taking(batch.front());
  Due due;
  Error error{};
  const bool done = register_with_lock(batch, behind, due, error);
  due.run();
  if (!done) return note_refused("register", error);
  count_event(Counter::procedure_registered, batch.size());
  if (observers.any() && !ToldLater::includes(batch)) tell_registered(batch);
  return Done{};
}

Status register_procedure(unw_dyn_info_t* di, Behind behind) noexcept { return register_procedures({&di, 1}, behind); }

void prefetch_changing(const unw_dyn_info_t* di) noexcept {
  registry.nodes.prefetch(di);
  __builtin_prefetch(di, 1);
  __builtin_prefetch(&di->u, 1);  // `u` may end on another cache line
}

Status cancel_procedure(unw_dyn_info_t* di) noexcept { return cancel(di, std::nullopt); }

Status cancel_procedure(unw_dyn_info_t* di, Behind behind) noexcept { return cancel(di, behind); }

Status cancel_procedures(std::span<unw_dyn_info_t* const> batch) noexcept {
  if (WritingScope::active()) return note_refused("cancel", refused_to_interrupter());
  log_to_be_taken_out("cancel", batch);
  const unw_dyn_info_t* unknown = nullptr;
  for (unw_dyn_info_t* di : batch) {
    const RegisteredNode found = registry.nodes.find(di);
    if (!found.state.live()) unknown = unknown == nullptr ? di : unknown;
    if (own_thread_holds(found.node)) return note_refused("cancel", read_by_caller(di));
  }
  std::uint32_t skipped = 0;
  Due due;
  BatchId id = 0;
  {
    const WritingScope scope;
    id = take_batch(nullptr, nullptr);
    if (id != 0) {
      registry.lock.lock();
      skipped = collect(batch, id);
      take_out({0, id}, due);
    }
  }
  if (id == 0) return cancel_one_by_one(batch);
  due.run();
  count_event(Counter::procedure_cancelled, batch.size() - skipped);
  if (observers.any()) tell_cancelled(batch);
  if (skipped != 0) return note_refused("cancel", not_registered(unknown));
  return Done{};
}

Result<RetireTicket> retire_procedures(std::span<unw_dyn_info_t* const> batch, void (*on_reclaimed)(void*),
                                       void* argument) noexcept {
  if (WritingScope::active()) return note_refused("retire", refused_to_interrupter());
  log_to_be_taken_out("retire", batch);
  const WritingScope scope;
  const BatchId id = take_batch(on_reclaimed, argument);
  if (id == 0) return note_refused("retire", error_at(ErrorCode::out_of_memory, nullptr, "no memory for the registry"));
  RetireTicket ticket{registry.batches[id].serial.load(std::memory_order_relaxed), id, 0};
  ticket.skipped = registry.lock.try_lock() ? retire_with_lock(batch, id) : retire_beside_lock(batch, id);
  count_event(Counter::procedure_retired, batch.size() - ticket.skipped);
  if (observers.any()) tell_retired();
  if (ticket.skipped != batch.size() || batch.empty()) return ticket;
  registry.batches.give_back(id);
  return note_refused("retire", not_registered(batch.front()));
}

bool reclaimed(RetireTicket ticket) noexcept {
  if (!registry.batches.contains(ticket.batch)) return true;
  RetiredBatch& batch = registry.batches[ticket.batch];
  const auto past = [&] { return batch.serial.load(std::memory_order_acquire) != ticket.serial; };
  if (past()) return true;
  if (WritingScope::active()) return false;
  Due due;
  {
    const WritingScope scope;
    if (!registry.lock.try_lock()) return false;
    drain_pending();
    if (!past() && !reclaim(ticket.batch, &due)) (void)reclaim_from_the_gone(ticket.batch, due);
    (void)unlock(nullptr);
  }
  due.run();
  return past();
}

RegistrationKey registration_of(unw_dyn_info_t* procedure) noexcept {
  const RegisteredNode found = registry.nodes.find(procedure);
  return found.state.live() ? RegistrationKey{found.state.registration(), found.node} : RegistrationKey{};
}

bool is_registered(const unw_dyn_info_t* di, Behind behind) noexcept {
  const NodeState state = registry.nodes.find(const_cast<unw_dyn_info_t*>(di)).state;  // find() only reads it
  return state.live() && is_behind(state, behind);
}

[[gnu::hot]] const CodeChanges& registration_changes() noexcept { return registry.changes; }

void forget_rows(std::uint64_t begin, std::uint64_t end) noexcept {
  if (begin >= end) return;
  registry.derived.forget_shapes();
  registry.changes.count_beside_writers(begin, end);
}

unw_dyn_info_list_t* procedure_list() noexcept { return &procedure_list_head(); }

RegistryStatistics registry_statistics() noexcept {
  RegistryStatistics statistics;
  statistics.registered = registry.registered.load(std::memory_order_relaxed);
  statistics.index_bytes = registry.nodes.bytes() + registry.index.bytes();
  statistics.library_bytes = statistics.index_bytes + registry.derived.bytes();
  return statistics;
}

}  // namespace jitunwind

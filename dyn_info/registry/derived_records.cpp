#include "jitunwind/dyn_info/registry/derived_records_internal.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "jitunwind/dyn_info/registry/registry_state_p.h"

namespace jitunwind {

namespace {

constexpr std::size_t class_bytes(std::uint32_t size_class) noexcept { return std::size_t{64} << size_class; }

}  // namespace

std::size_t DerivedRecord::size() const noexcept { return class_bytes(size_class) - sizeof(DerivedRecord); }

DerivedRecord* DerivedRecords::at(std::uint32_t cell) const noexcept {
  return std::launder(reinterpret_cast<DerivedRecord*>(&cells_[cell]));
}

/// Grows to the next power of two, so that growing is rare.
bool DerivedRecords::grow(NodeId id) noexcept {
  const NodeId nodes = std::max<NodeId>(std::bit_ceil(id + 1), 1024);
  if (!slots_.make_up_to(nodes - 1) || !shapes_.make_up_to(nodes - 1)) return false;
  readable_below_.store(nodes, std::memory_order_release);
  const NodeId before = std::exchange(ready_below_, nodes);
  if (map_cells()) return true;
  ready_below_ = before;
  return false;
}

/// Maps cells for the nodes and the long code that are registered.
bool DerivedRecords::map_cells() noexcept {
  const std::uint64_t wanted = ready_below_ * k_cells_of_procedure + k_spare_cells + expected_cells_;
  const std::uint64_t cells = std::min(wanted, cells_.k_capacity);
  if (cells <= cells_mapped_.load(std::memory_order_relaxed)) return true;
  if (!cells_.make_up_to(cells - 1)) return false;
  cells_mapped_.store(cells, std::memory_order_release);
  return true;
}

/// Reserves room for the records of long code. Some of that code may have none otherwise, which allocate() reports.
void DerivedRecords::expect_more(std::uint64_t cells) noexcept {
  expected_cells_ += cells;
  (void)map_cells();
}

DerivedRecord* DerivedRecords::allocate(std::size_t bytes) noexcept {
  if (bytes > k_max_bytes) return nullptr;
  const std::size_t cells = (bytes + sizeof(DerivedRecord) + sizeof(Cell) - 1) / sizeof(Cell);
  const auto size_class = static_cast<unsigned>(std::bit_width(cells - 1));
  if (DerivedRecord* const record = pop(size_class)) return record;
  if (DerivedRecord* const record = carve(size_class)) return record;
  for (unsigned larger = size_class + 1; larger < k_classes; ++larger)
    if (DerivedRecord* const record = pop(larger)) return record;
  return nullptr;
}

/// The head's count of changes tells a record that was taken and given back in between from one that never left.
DerivedRecord* DerivedRecords::pop(unsigned size_class) noexcept {
  std::atomic<std::uint64_t>& head = free_[size_class];
  std::uint64_t old = head.load(std::memory_order_acquire);
  while ((old & 0xffffffffu) != 0) {
    DerivedRecord* record = at(static_cast<std::uint32_t>(old & 0xffffffffu) - 1);
    const std::uint64_t next = record->next_free.load(std::memory_order_relaxed);
    if (head.compare_exchange_weak(old, ((old >> 32) + 1) << 32 | next, std::memory_order_acq_rel)) return record;
  }
  return nullptr;
}

void DerivedRecords::give_back(DerivedRecord* record) noexcept {
  std::atomic<std::uint64_t>& head = free_[record->size_class];
  std::uint64_t old = head.load(std::memory_order_relaxed);
  do {
    record->next_free.store(static_cast<std::uint32_t>(old), std::memory_order_relaxed);
  } while (!head.compare_exchange_weak(old, ((old >> 32) + 1) << 32 | (record->cell + 1), std::memory_order_acq_rel));
}

DerivedRecord* DerivedRecords::carve(unsigned size_class) noexcept {
  const std::uint64_t count = std::uint64_t{1} << size_class;
  const std::uint64_t mapped = cells_mapped_.load(std::memory_order_acquire);
  std::uint64_t old = frontier_.load(std::memory_order_relaxed);
  std::uint64_t begin = 0;
  do {
    begin = old;
    if (begin + count > cells_.next_block(begin)) begin = cells_.next_block(begin);
    if (begin + count > mapped) return nullptr;
  } while (!frontier_.compare_exchange_weak(old, begin + count, std::memory_order_relaxed));
  auto* const record = new (&cells_[begin]) DerivedRecord{};
  record->cell = static_cast<std::uint32_t>(begin);
  record->size_class = size_class;
  return record;
}

namespace {

/// The way of twice the length where two of one length follow each other, as in a number of skew binary digits: so the
/// ways from any record to any other in one descending run are logarithmic, and each new one takes constant time
/// (Myers 1983, "An applicative random-access stack").
void lead_far(DerivedRecord& record, DerivedRecord* next) noexcept {
  record.depth = 0;
  DerivedRecord* far = nullptr;
  if (next != nullptr && next->covers.end <= record.covers.begin) {
    record.depth = next->depth + 1;
    far = next;
    const DerivedRecord* const second = next->far.load(std::memory_order_relaxed);
    DerivedRecord* const third = second != nullptr ? second->far.load(std::memory_order_relaxed) : nullptr;
    if (third != nullptr && next->depth - second->depth == second->depth - third->depth) far = third;
  }
  record.far.store(far, std::memory_order_relaxed);
}

/// Calls `read(known, answer, range)` for the newest procedure that covers `pc`, and returns what it has set in
/// `known`, as it was at one moment. Nothing is read if there is none. Returns `otherwise` if registrations interfered
/// again and again.
template <class T, class Read>
[[gnu::always_inline]] inline T read_beside_writers(std::uint64_t pc, const T& otherwise, Read read) noexcept {
  using Kind = ProcedureIndex::Answer::Kind;
  const RegistryState& r = registry_state;
  constexpr int k_attempts = 4;
  T known{};
  for (int i = 0; i < k_attempts; ++i, known = {}) {
    ProcedureIndex::Snapshot snapshot;
    const ProcedureIndex::Answer answer = r.index.find(pc, snapshot);
    if (answer.kind == Kind::interfered) continue;
    if (answer.kind == Kind::found) {
      const ProcedureNode& node = r.nodes[answer.node];
      // Fields of another procedure can only be seen together with that one's state.
      const std::uint64_t start = node.start.load(std::memory_order_acquire);
      read(known, answer, AddrRange{start, node.end.load(std::memory_order_acquire)});
      if (node.state.load(std::memory_order_acquire) != answer.state.word()) continue;
    }
    if (r.index.unchanged(pc, snapshot)) return known;
  }
  known = otherwise;
  return known;
}

}  // namespace

const DerivedRecord* DerivedRecords::publish(NodeId id, DerivedRecord* record) noexcept {
  any_.store(true, std::memory_order_relaxed);
  std::atomic<Slot>& place = slots_[id];
  Slot before = place.load(std::memory_order_acquire);
  do {
    DerivedRecord* const first = before.first();
    if (first != nullptr && first->covers == record->covers) {
      give_back(record);
      return first;
    }
    record->next.store(first, std::memory_order_relaxed);
    lead_far(*record, first);
  } while (!place.compare_exchange_weak(before, Slot(record), std::memory_order_acq_rel));
  return record;
}

void DerivedRecords::share(NodeId id, const DerivedRecord* record) noexcept {
  any_.store(true, std::memory_order_relaxed);
  Slot none;
  slots_[id].compare_exchange_strong(none, Slot::of_shared(record), std::memory_order_acq_rel);
}

void DerivedRecords::clear_slot(NodeId id) noexcept {
  if (id >= readable_below_.load(std::memory_order_relaxed)) return;
  std::atomic<Slot>& place = slots_[id];
  if (place.load(std::memory_order_relaxed).empty()) return;
  DerivedRecord* record = place.exchange(Slot(), std::memory_order_acq_rel).first();
  while (record != nullptr) {
    DerivedRecord* const next = record->next.load(std::memory_order_relaxed);
    DerivedRecord* const released = std::exchange(set_aside_[next_set_aside_], record);
    next_set_aside_ = (next_set_aside_ + 1) % k_set_aside;
    if (released != nullptr) give_back(released);
    record = next;
  }
}

const DerivedRecord* DerivedRecords::find(NodeId id, AddrRange procedure, std::uint64_t pc) const noexcept {
  const Slot known = slot(id);
  if (const DerivedRecord* const shared = known.shared()) {
    const AddrRange covers{procedure.begin + shared->covers.begin, procedure.end + shared->covers.end};
    return covers.contains(pc) ? shared : nullptr;
  }
  const DerivedRecord* record = known.first();
  while (record != nullptr && !record->covers.contains(pc)) {
    const DerivedRecord* const far = record->far.load(std::memory_order_relaxed);
    // All records between are behind the pc, or all that follow are in front of it.
    const bool skips = far != nullptr && (pc < far->covers.end || pc >= record->covers.end);
    record = skips ? far : record->next.load(std::memory_order_relaxed);
  }
  return record;
}

bool DerivedRecords::has_one(NodeId id) const noexcept {
  const DerivedRecord* const first = slot(id).first();
  return first != nullptr && first->next.load(std::memory_order_relaxed) == nullptr;
}

const DerivedRecord* find_derived(const ProcedureHold& hold, std::uint64_t pc) noexcept {
  return registry_state.derived.find(hold.key().node, {hold.info()->start_ip, hold.info()->end_ip}, pc);
}

bool has_one_derived(const ProcedureHold& hold) noexcept { return registry_state.derived.has_one(hold.key().node); }

DerivedAnswer find_derived(std::uint64_t pc) noexcept {
  using Kind = DerivedAnswer::Kind;
  return read_beside_writers(
      pc, DerivedAnswer{Kind::no_record}, [&](auto& known, const auto& answer, AddrRange procedure) {
        const DerivedRecord* const record = registry_state.derived.find(answer.node, procedure, pc);
        known = DerivedAnswer{record != nullptr ? Kind::found : Kind::no_record, record, procedure.begin};
      });
}

ShapeAnswer find_noted_shape(std::uint64_t pc) noexcept {
  return read_beside_writers(pc, ShapeAnswer{}, [](auto& known, const auto& answer, AddrRange procedure) {
    known.note = registry_state.derived.note(answer.node);
    known.procedure = procedure;
    known.key = {answer.state.registration(), answer.node};
  });
}

DerivedRecord* allocate_derived(std::size_t bytes) noexcept { return registry_state.derived.allocate(bytes); }

void give_back_derived(DerivedRecord* record) noexcept { registry_state.derived.give_back(record); }

const DerivedRecord* publish_derived(const ProcedureHold& hold, DerivedRecord* record) noexcept {
  return registry_state.derived.publish(hold.key().node, record);
}

void share_derived(const ProcedureHold& hold, const DerivedRecord* record) noexcept {
  registry_state.derived.share(hold.key().node, record);
}

}  // namespace jitunwind

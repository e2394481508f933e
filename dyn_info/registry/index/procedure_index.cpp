#include "jitunwind/dyn_info/registry/index/procedure_index_p.h"

#include <bit>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"

namespace jitunwind {

namespace {

constexpr std::uint32_t link_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell); }
constexpr std::uint32_t insertion_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }
constexpr NodeId node_of(std::uint32_t link) { return link >> 1; }
constexpr unsigned side_of(std::uint32_t link) { return link & 1; }

}  // namespace

bool ProcedureIndex::same_cell(std::uint64_t a, std::uint64_t b, unsigned size_class) noexcept {
  return scaled(a ^ b, 0) >> cell_bits(size_class) == 0;
}

void ProcedureIndex::count_bytes() noexcept {
  bytes_.store(blocks_.bytes() + regions_.bytes() + mapped_bytes_, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline const ProcedureIndex::Part* ProcedureIndex::find_part(
    std::uint64_t address) const noexcept {
  const Directory* const directory = directory_.load(std::memory_order_acquire);
  return directory == nullptr ? nullptr : &directory->parts[part_number(address)];
}

[[gnu::always_inline]] inline const ProcedureIndex::Region* ProcedureIndex::find_region(const Part* part,
                                                                                        std::uint64_t address,
                                                                                        unsigned tier) const noexcept {
  if (tier == 2) return top_region_.load(std::memory_order_acquire);
  if (part == nullptr) return nullptr;
  if (tier == 1) return part->region.load(std::memory_order_acquire);
  const Table* const table = part->table.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  return table->regions[region_number(address) % table->regions.size()].load(std::memory_order_acquire);
}

[[gnu::always_inline]] inline unsigned ProcedureIndex::block_number(std::uint64_t scaled_address,
                                                                    unsigned level) noexcept {
  return static_cast<unsigned>(level == 0 ? scaled_address >> 16 & 31 : 32 + (scaled_address >> 19 & 3));
}

[[gnu::always_inline]] inline const ProcedureIndex::Cell* ProcedureIndex::cell_of(const Region& region,
                                                                                  std::uint64_t scaled_address,
                                                                                  unsigned level) noexcept {
  if (level >= 2) {
    constexpr std::array<unsigned, 3> first{0, 256, 256 + 32};
    const auto in_region = static_cast<std::size_t>(scaled_address & ((std::uint64_t{1} << k_region_bits) - 1));
    return &region.cells[first[level - 2] + (in_region >> cell_bits(level))];
  }
  const Block* found = region.blocks[block_number(scaled_address, level)].load(std::memory_order_acquire);
  return found == nullptr ? nullptr : &found->cells[static_cast<std::size_t>(scaled_address >> cell_bits(level)) & 511];
}

std::atomic<ProcedureIndex::Region*>* ProcedureIndex::make_region_place(std::uint64_t address, unsigned tier) noexcept {
  if (tier == 2) return &top_region_;
  const auto make = [this]<class T>(std::atomic<T*>& place, std::size_t bytes) {
    T* there = place.load(std::memory_order_relaxed);
    if (there != nullptr) return there;
    place.store(there = static_cast<T*>(map_zeroed(sizeof(T), Pages::single)), std::memory_order_release);
    if (there != nullptr) mapped_bytes_ += bytes;
    return there;
  };
  Directory* const directory = make(directory_, sizeof(Directory::parts));
  if (directory == nullptr) return nullptr;
  Part& part = directory->parts[part_number(address)];
  if (tier == 1) return &part.region;
  Table* const table = make(part.table, 0);  // only touched pages of the table count
  return table == nullptr ? nullptr : &table->regions[region_number(address) % table->regions.size()];
}

ProcedureIndex::Region* ProcedureIndex::make_region(std::uint64_t address, unsigned tier) noexcept {
  std::atomic<Region*>* const place = make_region_place(address, tier);
  if (place == nullptr) return nullptr;
  auto* region = place->load(std::memory_order_relaxed);
  if (region != nullptr) return region;
  region = static_cast<Region*>(regions_.take());
  if (region == nullptr) return nullptr;
  IndexPageNote& note = IndexPages::note_of(region);
  note.address = address;
  note.tier = static_cast<std::uint8_t>(tier);
  note.level = k_whole_region;
  if (tier == 0) {
    auto& regions = directory_.load(std::memory_order_relaxed)->regions[region_number(address) / k_page_entries];
    if (regions++ == 0) mapped_bytes_ += k_page_size;
  }
  place->store(region, std::memory_order_release);
  return region;
}

/// `lowest` is the part's region of the lowest tier. Most classes are of that, which needs no division.
[[gnu::always_inline]] inline const ProcedureIndex::Cell* ProcedureIndex::find_cell(
    const Part* part, const Region* lowest, std::uint64_t address, unsigned size_class) const noexcept {
  if (size_class < k_tier_classes) [[likely]]
    return lowest == nullptr ? nullptr : cell_of(*lowest, scaled(address, 0), size_class);
  const unsigned tier = size_class / k_tier_classes;
  const Region* const region = find_region(part, address, tier);
  return region == nullptr ? nullptr : cell_of(*region, scaled(address, tier), size_class % k_tier_classes);
}

[[gnu::always_inline]] inline const ProcedureIndex::Cell* ProcedureIndex::find_cell(
    std::uint64_t address, unsigned size_class) const noexcept {
  const Part* const part = find_part(address);
  return find_cell(part, find_region(part, address, 0), address, size_class);
}

bool ProcedureIndex::make_cell_place(std::uint64_t address, unsigned size_class) noexcept {
  const unsigned tier = size_class / k_tier_classes;
  const unsigned level = size_class % k_tier_classes;
  Region* const region = make_region(address, tier);
  if (region == nullptr || level >= 2) return region != nullptr;
  std::atomic<Block*>& place = region->blocks[block_number(scaled(address, tier), level)];
  if (place.load(std::memory_order_relaxed) != nullptr) return true;
  auto* const block = static_cast<Block*>(blocks_.take());
  if (block == nullptr) return false;
  IndexPageNote& note = IndexPages::note_of(block);
  note.address = address;
  note.tier = static_cast<std::uint8_t>(tier);
  note.level = static_cast<std::uint8_t>(level);
  ++IndexPages::note_of(region).used;
  place.store(block, std::memory_order_release);
  return true;
}

[[gnu::always_inline]] inline ProcedureIndex::Cell& ProcedureIndex::cell(std::uint64_t address,
                                                                         unsigned size_class) noexcept {
  const Cell* const there = find_cell(address, size_class);
  if (there == nullptr) __builtin_unreachable();  // else it is checked on the way
  return const_cast<Cell&>(*there);
}

[[gnu::noinline]] ProcedureIndex::Cell* ProcedureIndex::make_cell(std::uint64_t address, unsigned size_class) noexcept {
  const bool made = make_cell_place(address, size_class);
  count_bytes();
  return made ? &cell(address, size_class) : nullptr;
}

inline ProcedureIndex::Cell* ProcedureIndex::reserve_cell(std::uint64_t address, unsigned size_class) noexcept {
  const Cell* const there = find_cell(address, size_class);
  return there != nullptr ? const_cast<Cell*>(there) : make_cell(address, size_class);
}

bool ProcedureIndex::reserve(std::uint64_t start, std::uint64_t end, Cells& cells) noexcept {
  const unsigned c = size_class(start, end);
  cells = {.size_class = c};
  if (!same_cell(start, end - 1, c)) {
    cells.last = reserve_cell(end - 1, c);
    if (cells.last == nullptr) return false;
  }
  cells.first = reserve_cell(start, c);
  if (cells.first == nullptr) return false;
  __builtin_prefetch(cells.first, 1);
  if ((classes_.load(std::memory_order_relaxed) & 1u << c) == 0) {
    classes_.fetch_or(1u << c, std::memory_order_release);
  }
  return true;
}

void ProcedureIndex::unreserve(std::uint64_t start, std::uint64_t end) noexcept {
  const unsigned c = size_class(start, end);
  unreserve_cell(start, c);
  if (!same_cell(start, end - 1, c)) unreserve_cell(end - 1, c);
}

void ProcedureIndex::unreserve_cell(std::uint64_t address, unsigned size_class) noexcept {
  const unsigned tier = size_class / k_tier_classes;
  const Region* const region = find_region(find_part(address), address, tier);
  if (region == nullptr) return;
  set_aside_if_empty(IndexPages::note_of(region));
  const Cell* const cell = cell_of(*region, scaled(address, tier), size_class % k_tier_classes);
  if (cell != nullptr) set_aside_if_empty(IndexPages::note_of(cell));
}

ProcedureIndex::Cells ProcedureIndex::cells(const ProcedureNode& node) noexcept {
  const std::uint64_t start = node.start.load(std::memory_order_relaxed);
  const std::uint64_t last = node.end.load(std::memory_order_relaxed) - 1;
  const unsigned c = NodeState(node.state.load(std::memory_order_relaxed)).size_class();
  return {c, &cell(start, c), same_cell(start, last, c) ? nullptr : &cell(last, c)};
}

[[gnu::always_inline]] inline void ProcedureIndex::push(NodeId id, ProcedureNode& node, unsigned side,
                                                        Cell& cell) noexcept {
  const std::uint32_t link = id << 1 | side;
  const std::uint64_t old = cell.load(std::memory_order_relaxed);
  node.previous[side].store(0, std::memory_order_relaxed);
  node.next[side].store(link_of(old), std::memory_order_release);
  if (link_of(old) != 0)
    nodes_[node_of(link_of(old))].previous[side_of(link_of(old))].store(link, std::memory_order_relaxed);
  else
    ++IndexPages::note_of(&cell).used;
  const std::uint64_t registration = NodeState(node.state.load(std::memory_order_relaxed)).registration();
  cell.store(registration << 32 | link, std::memory_order_release);
}

void ProcedureIndex::insert(NodeId id, ProcedureNode& node, const Cells& cells) noexcept {
  registered_span.include(node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed) - 1);
  push(id, node, 0, *cells.first);
  if (cells.last != nullptr) push(id, node, 1, *cells.last);
}

void ProcedureIndex::prefetch_removal(const ProcedureNode& node) const noexcept {
  const std::uint32_t next = node.next[0].load(std::memory_order_relaxed);
  const std::uint32_t previous = node.previous[0].load(std::memory_order_relaxed);
  if (next != 0) __builtin_prefetch(&nodes_[node_of(next)], 1);
  if (previous != 0) {
    __builtin_prefetch(&nodes_[node_of(previous)], 1);
  } else {
    const unsigned c = NodeState(node.state.load(std::memory_order_relaxed)).size_class();
    __builtin_prefetch(find_cell(node.start.load(std::memory_order_relaxed), c), 1);
  }
}

/// Counts one entry less that leads to something.
inline void ProcedureIndex::leave(IndexPageNote& note) noexcept {
  if (--note.used == 0) set_aside_if_empty(note);
}

void ProcedureIndex::set_aside_if_empty(IndexPageNote& note) noexcept {
  if (note.used != 0 || note.is_set_aside || note.tier == 2) return;
  note.is_set_aside = true;
  set_aside_[(next_set_aside_ + set_aside_count_++) % k_set_aside_room] = &note;
}

[[gnu::always_inline]] inline void ProcedureIndex::unlink(ProcedureNode& node, unsigned side, std::uint64_t address,
                                                          unsigned size_class) noexcept {
  const std::uint32_t next = node.next[side].load(std::memory_order_relaxed);
  const std::uint32_t previous = node.previous[side].load(std::memory_order_relaxed);
  if (previous != 0) {
    nodes_[node_of(previous)].next[side_of(previous)].store(next, std::memory_order_release);
  } else {
    Cell& head = cell(address, size_class);
    head.store((head.load(std::memory_order_relaxed) & ~std::uint64_t{0xffffffff}) | next, std::memory_order_release);
    if (next == 0) leave(IndexPages::note_of(&head));
  }
  if (next != 0) nodes_[node_of(next)].previous[side_of(next)].store(previous, std::memory_order_relaxed);
}

void ProcedureIndex::remove(ProcedureNode& node) noexcept {
  const std::uint64_t start = node.start.load(std::memory_order_relaxed);
  const std::uint64_t last = node.end.load(std::memory_order_relaxed) - 1;
  const unsigned c = NodeState(node.state.load(std::memory_order_relaxed)).size_class();
  unlink(node, 0, start, c);
  if (!same_cell(start, last, c)) unlink(node, 1, last, c);
}

// Empty pages are kept for a while, since new code often comes where old code was.

void ProcedureIndex::trim() noexcept {
  while (has_too_many_empty()) {
    IndexPageNote& note = *set_aside_[next_set_aside_];
    next_set_aside_ = (next_set_aside_ + 1) % k_set_aside_room;
    --set_aside_count_;
    note.is_set_aside = false;
    if (note.used == 0) drop(note);
  }
  count_bytes();
}

// A lookup that began to read before the page was dropped, or that reads it when it serves other addresses, sees a
// changed count. A lookup that finds the same count twice has seen empty cells only, or reads while the lock keeps
// insertions out.
void ProcedureIndex::drop(IndexPageNote& note) noexcept {
  Part& part = directory_.load(std::memory_order_relaxed)->parts[part_number(note.address)];
  part.drops.store(part.drops.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (note.level == k_whole_region) {
    drop_region(note, part);
  } else {
    drop_block(note);
  }
  part.drops.store(part.drops.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  (note.level == k_whole_region ? regions_ : blocks_).give_back(IndexPages::page_of(note));
}

void ProcedureIndex::drop_block(const IndexPageNote& note) noexcept {
  auto* const region = const_cast<Region*>(find_region(find_part(note.address), note.address, note.tier));
  region->blocks[block_number(scaled(note.address, note.tier), note.level)].store(nullptr, std::memory_order_release);
  leave(IndexPages::note_of(region));
}

void ProcedureIndex::drop_region(const IndexPageNote& note, Part& part) noexcept {
  if (note.tier == 1) return part.region.store(nullptr, std::memory_order_release);
  Table* const table = part.table.load(std::memory_order_relaxed);
  const std::size_t number = region_number(note.address);
  std::atomic<Region*>& place = table->regions[number % table->regions.size()];
  place.store(nullptr, std::memory_order_release);
  if (--directory_.load(std::memory_order_relaxed)->regions[number / k_page_entries] != 0) return;
  mapped_bytes_ -= std::size_t{k_page_size};
  strip_page(&table->regions[number % table->regions.size() / k_page_entries * k_page_entries]);
}

// Chains run from newer to older procedures. A node may be made into another procedure's while this walk is on its way
// to it. Its registration number is then larger than any that the walk has met. Whatever a node held before it was made
// anew leads to such nodes or to the rest of the chain. So falling numbers prove that the walk has not left its chain.
// The first node, which no number bounds, is known by its cell.
[[gnu::always_inline]] inline bool ProcedureIndex::walk(std::uint32_t first, unsigned size_class, std::uint64_t pc,
                                                        Answer& newest) const noexcept {
  std::uint64_t newest_left = ~std::uint64_t{0};
  for (std::uint32_t link = first; link != 0;) {
    const ProcedureNode& node = nodes_[node_of(link)];
    const NodeState state(node.state.load(std::memory_order_acquire));
    const std::uint64_t start = node.start.load(std::memory_order_acquire);
    const std::uint64_t end = node.end.load(std::memory_order_acquire);
    const std::uint32_t next = node.next[side_of(link)].load(std::memory_order_acquire);
    const NodeState again(node.state.load(std::memory_order_acquire));
    if (state.life() == NodeState::Life::building || again.registration() != state.registration() ||
        state.registration() >= newest_left) [[unlikely]]
      return false;
    if (link == first) {
      const std::uint64_t in_cell = side_of(link) == 0 ? start : end - 1;
      if (state.size_class() != size_class || !same_cell(in_cell, pc, size_class)) [[unlikely]]
        return false;
    }
    if (again.live() && pc - start < end - start) {
      if (again.word() > newest.state.word()) newest = {Answer::Kind::found, node_of(link), again};
      return true;
    }
    newest_left = state.registration();
    link = next;
  }
  return true;
}

ProcedureIndex::Answer ProcedureIndex::find(std::uint64_t pc, Snapshot& snapshot) const noexcept {
  Answer newest;
  snapshot.classes = classes_.load(std::memory_order_acquire);
  const Part* const part = find_part(pc);
  snapshot.drops = drops(part);
  const Region* const lowest = find_region(part, pc, 0);
  for (std::uint32_t left = snapshot.classes; left != 0; left &= left - 1) {
    const auto c = static_cast<unsigned>(std::countr_zero(left));
    const Cell* const cell = find_cell(part, lowest, pc, c);
    snapshot.cells[c] = cell;
    if (cell == nullptr) continue;
    const std::uint64_t content = cell->load(std::memory_order_acquire);
    snapshot.insertions[c] = insertion_of(content);
    if (!walk(link_of(content), c, pc, newest)) return {Answer::Kind::interfered};
  }
  return newest;
}

bool ProcedureIndex::unchanged(std::uint64_t pc, const Snapshot& snapshot) const noexcept {
  if (classes_.load(std::memory_order_acquire) != snapshot.classes) return false;
  for (std::uint32_t left = snapshot.classes; left != 0; left &= left - 1) {
    const auto c = static_cast<unsigned>(std::countr_zero(left));
    if (const Cell* const cell = snapshot.cells[c]) {
      if (insertion_of(cell->load(std::memory_order_acquire)) != snapshot.insertions[c]) return false;
    } else if (find_cell(pc, c) != nullptr) {
      return false;
    }
  }
  return drops(find_part(pc)) == snapshot.drops;
}

}  // namespace jitunwind

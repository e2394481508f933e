#include "dyn_info/procedure_index_p.h"

#include <algorithm>
#include <bit>

#include "dyn_info/mapped_memory_p.h"
#include "dyn_info/registered_span_p.h"

namespace jitunwind {

namespace {

constexpr std::size_t k_first_arena = std::size_t{256} << 10;

constexpr std::uint32_t link_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell); }
constexpr std::uint32_t insertions_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }
constexpr NodeId node_of(std::uint32_t link) { return link >> 1; }
constexpr unsigned side_of(std::uint32_t link) { return link & 1; }

}  // namespace

unsigned ProcedureIndex::size_class(std::uint64_t start, std::uint64_t end) noexcept {
  const auto bits = static_cast<unsigned>(std::bit_width(end - start - 1));
  return bits <= 7 ? 0 : std::min((bits - 5) / 3, k_classes - 1);
}

bool ProcedureIndex::same_cell(std::uint64_t a, std::uint64_t b, unsigned size_class) noexcept {
  return scaled(a, 0) >> cell_bits(size_class) == scaled(b, 0) >> cell_bits(size_class);
}

// Tables.

template <class T>
T* ProcedureIndex::allocate() noexcept {
  constexpr std::size_t size = (sizeof(T) + 63) & ~std::size_t{63};
  void* memory = nullptr;
  if constexpr (size >= k_first_arena / 8) {
    memory = map_zeroed(size);
  } else {
    if (arena_left_ < size) {
      const std::size_t next = arena_ == nullptr ? k_first_arena : k_huge_page;
      auto* fresh = static_cast<std::byte*>(map_zeroed(next));
      if (fresh == nullptr) return nullptr;
      arena_ = fresh;
      arena_left_ = next;
    }
    memory = arena_;
    arena_ += size;
    arena_left_ -= size;
  }
  if (memory != nullptr) bytes_.fetch_add(size, std::memory_order_relaxed);
  return static_cast<T*>(memory);
}

[[gnu::always_inline]] inline const ProcedureIndex::Region* ProcedureIndex::find_region(std::uint64_t address,
                                                                                        unsigned tier) const noexcept {
  constexpr std::uint64_t mask = (1u << k_table_bits) - 1;
  if (tier == 2) return top_region_.load(std::memory_order_acquire);
  const std::uint64_t number = scaled(address, tier) >> k_region_bits;
  const Regions* table = nullptr;
  if (tier == 1) {
    table = upper_regions_.load(std::memory_order_acquire);
  } else {
    const Directory* directory = directory_.load(std::memory_order_acquire);
    if (directory == nullptr) return nullptr;
    table = directory->tables[number >> k_table_bits].load(std::memory_order_acquire);
  }
  return table == nullptr ? nullptr : table->regions[number & mask].load(std::memory_order_acquire);
}

[[gnu::always_inline]] inline const ProcedureIndex::Cell* ProcedureIndex::cell_of(const Region& region,
                                                                                  std::uint64_t scaled_address,
                                                                                  unsigned level) noexcept {
  if (level >= 2) {
    constexpr std::array<unsigned, 3> first{0, 64, 72};
    const std::uint64_t in_region = scaled_address & ((std::uint64_t{1} << k_region_bits) - 1);
    return &region.cells[first[level - 2] + (in_region >> cell_bits(level))];
  }
  const std::size_t block = level == 0 ? (scaled_address >> 16) & 7 : 8;
  const Block* found = region.blocks[block].load(std::memory_order_acquire);
  return found == nullptr ? nullptr : &found->cells[(scaled_address >> cell_bits(level)) & 511];
}

ProcedureIndex::Region* ProcedureIndex::make_region(std::uint64_t address, unsigned tier) noexcept {
  if (const Region* region = find_region(address, tier)) return const_cast<Region*>(region);
  const auto make = [this]<class T>(std::atomic<T*>& place) {
    T* there = place.load(std::memory_order_relaxed);
    if (there == nullptr) place.store(there = allocate<T>(), std::memory_order_release);
    return there;
  };
  constexpr std::uint64_t mask = (1u << k_table_bits) - 1;
  if (tier == 2) return make(top_region_);
  const std::uint64_t number = scaled(address, tier) >> k_region_bits;
  Regions* table = nullptr;
  if (tier == 1) {
    table = make(upper_regions_);
  } else if (Directory* directory = make(directory_)) {
    table = make(directory->tables[number >> k_table_bits]);
  }
  return table == nullptr ? nullptr : make(table->regions[number & mask]);
}

[[gnu::always_inline]] inline const ProcedureIndex::Cell* ProcedureIndex::find_cell(
    std::uint64_t address, unsigned size_class) const noexcept {
  if (size_class < k_tier_classes) [[likely]] {
    const Region* region = find_region(address, 0);
    return region == nullptr ? nullptr : cell_of(*region, scaled(address, 0), size_class);
  }
  const unsigned tier = size_class / k_tier_classes;
  const Region* region = find_region(address, tier);
  return region == nullptr ? nullptr : cell_of(*region, scaled(address, tier), size_class % k_tier_classes);
}

bool ProcedureIndex::make_cell(std::uint64_t address, unsigned size_class) noexcept {
  const unsigned tier = size_class / k_tier_classes;
  const unsigned level = size_class % k_tier_classes;
  Region* region = make_region(address, tier);
  if (region == nullptr) return false;
  if (level >= 2) return true;
  std::atomic<Block*>& place = region->blocks[level == 0 ? (scaled(address, tier) >> 16) & 7 : 8];
  if (place.load(std::memory_order_relaxed) != nullptr) return true;
  Block* block = allocate<Block>();
  place.store(block, std::memory_order_release);
  return block != nullptr;
}

ProcedureIndex::Cell& ProcedureIndex::cell(std::uint64_t address, unsigned size_class) noexcept {
  return const_cast<Cell&>(*find_cell(address, size_class));
}

inline ProcedureIndex::Cell* ProcedureIndex::reserve_cell(std::uint64_t address, unsigned size_class) noexcept {
  if (const Cell* there = find_cell(address, size_class)) return const_cast<Cell*>(there);
  return make_cell(address, size_class) ? &cell(address, size_class) : nullptr;
}

// Writers.

ProcedureIndex::Cells ProcedureIndex::reserve(std::uint64_t start, std::uint64_t end) noexcept {
  const unsigned c = size_class(start, end);
  Cells cells;
  if (!same_cell(start, end - 1, c)) {
    cells.last = reserve_cell(end - 1, c);
    if (cells.last == nullptr) return {};
  }
  cells.first = reserve_cell(start, c);
  if (cells.first == nullptr) return {};
  __builtin_prefetch(cells.first, 1);
  if ((classes_.load(std::memory_order_relaxed) & 1u << c) == 0) {
    classes_.fetch_or(1u << c, std::memory_order_release);
  }
  return cells;
}

ProcedureIndex::Cells ProcedureIndex::cells(const ProcedureNode& node) noexcept {
  const std::uint64_t start = node.start.load(std::memory_order_relaxed);
  const std::uint64_t last = node.end.load(std::memory_order_relaxed) - 1;
  const unsigned c = NodeState(node.state.load(std::memory_order_relaxed)).size_class();
  return {&cell(start, c), same_cell(start, last, c) ? nullptr : &cell(last, c)};
}

void ProcedureIndex::insert(NodeId id, Cells cells) noexcept {
  ProcedureNode& node = nodes_[id];
  registered_span.include(node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed) - 1);
  push(id, node, 0, *cells.first);
  if (cells.last != nullptr) push(id, node, 1, *cells.last);
}

void ProcedureIndex::push(NodeId id, ProcedureNode& node, unsigned side, Cell& cell) noexcept {
  const std::uint32_t link = id << 1 | side;
  const std::uint64_t old = cell.load(std::memory_order_relaxed);
  node.previous[side].store(0, std::memory_order_relaxed);
  node.next[side].store(link_of(old), std::memory_order_release);
  if (link_of(old) != 0)
    nodes_[node_of(link_of(old))].previous[side_of(link_of(old))].store(link, std::memory_order_relaxed);
  const std::uint64_t insertions = insertions_of(old) + 1u;
  cell.store(insertions << 32 | link, std::memory_order_release);
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

void ProcedureIndex::remove(ProcedureNode& node) noexcept {
  const std::uint64_t start = node.start.load(std::memory_order_relaxed);
  const std::uint64_t last = node.end.load(std::memory_order_relaxed) - 1;
  const unsigned c = NodeState(node.state.load(std::memory_order_relaxed)).size_class();
  unlink(node, 0, start, c);
  if (!same_cell(start, last, c)) unlink(node, 1, last, c);
}

void ProcedureIndex::unlink(ProcedureNode& node, unsigned side, std::uint64_t address, unsigned size_class) noexcept {
  const std::uint32_t next = node.next[side].load(std::memory_order_relaxed);
  const std::uint32_t previous = node.previous[side].load(std::memory_order_relaxed);
  if (previous != 0) {
    nodes_[node_of(previous)].next[side_of(previous)].store(next, std::memory_order_release);
  } else {
    Cell& head = cell(address, size_class);
    head.store((head.load(std::memory_order_relaxed) & ~std::uint64_t{0xffffffff}) | next, std::memory_order_release);
  }
  if (next != 0) nodes_[node_of(next)].previous[side_of(next)].store(previous, std::memory_order_relaxed);
}

// Lookups.

// Chains run from newer to older procedures. A node that was made into another procedure's while this walk was on its
// way to it has a larger registration number than any it has met, and whatever a node held before it was made anew
// leads to such nodes or to the rest of the chain: so falling numbers prove that the walk has not left its chain. The
// first node, which no number bounds, is known by its cell.
ProcedureIndex::Answer ProcedureIndex::walk(std::uint64_t cell, unsigned size_class, std::uint64_t pc) const noexcept {
  using Kind = Answer::Kind;
  std::uint64_t newest_left = ~std::uint64_t{0};
  for (std::uint32_t link = link_of(cell); link != 0;) {
    const ProcedureNode& node = nodes_[node_of(link)];
    const NodeState state(node.state.load(std::memory_order_acquire));
    const std::uint64_t start = node.start.load(std::memory_order_acquire);
    const std::uint64_t end = node.end.load(std::memory_order_acquire);
    const std::uint32_t next = node.next[side_of(link)].load(std::memory_order_acquire);
    const NodeState again(node.state.load(std::memory_order_acquire));
    if (state.life() == NodeState::Life::building || again.registration() != state.registration() ||
        state.registration() >= newest_left || state.size_class() != size_class ||
        !same_cell(side_of(link) == 0 ? start : end - 1, pc, size_class)) {
      return {Kind::interfered};
    }
    if (again.live() && pc - start < end - start) return {Kind::found, node_of(link), again};
    newest_left = state.registration();
    link = next;
  }
  return {Kind::none};
}

ProcedureIndex::Answer ProcedureIndex::find(std::uint64_t pc, Snapshot& snapshot) const noexcept {
  Answer newest;
  snapshot.classes = classes_.load(std::memory_order_acquire);
  const Region* region = nullptr;
  unsigned region_tier = k_classes;
  for (std::uint32_t left = snapshot.classes; left != 0; left &= left - 1) {
    const auto c = static_cast<unsigned>(std::countr_zero(left));
    const unsigned tier = c / k_tier_classes;
    if (tier != region_tier) {
      region = find_region(pc, tier);
      region_tier = tier;
    }
    const Cell* cell = region == nullptr ? nullptr : cell_of(*region, scaled(pc, tier), c % k_tier_classes);
    snapshot.cells[c] = cell;
    if (cell == nullptr) continue;
    const std::uint64_t content = cell->load(std::memory_order_acquire);
    snapshot.insertions[c] = insertions_of(content);
    if (link_of(content) == 0) continue;
    const Answer here = walk(content, c, pc);
    if (here.kind == Answer::Kind::interfered) return here;
    if (here.kind == Answer::Kind::found && here.state.registration() > newest.state.registration()) newest = here;
  }
  return newest;
}

bool ProcedureIndex::unchanged(std::uint64_t pc, const Snapshot& snapshot) const noexcept {
  if (classes_.load(std::memory_order_acquire) != snapshot.classes) return false;
  for (std::uint32_t left = snapshot.classes; left != 0; left &= left - 1) {
    const auto c = static_cast<unsigned>(std::countr_zero(left));
    const Cell* cell = snapshot.cells[c];
    if (cell != nullptr) {
      if (insertions_of(cell->load(std::memory_order_acquire)) != snapshot.insertions[c]) return false;
    } else {
      cell = find_cell(pc, c);
      if (cell != nullptr && insertions_of(cell->load(std::memory_order_acquire)) != 0) return false;
    }
  }
  return true;
}

}  // namespace jitunwind

// Finds the newest procedure that covers an address. The index maps cells of code to chains of nodes, and has one set
// of cells for each size class of procedures. docs/registry.md has the structure and the proof.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

// Pages of memory for the index. The index takes a page where procedures come, and gives it back to the kernel where
// they are gone. A page of a pool stays mapped and readable for ever, so that a lookup may still look at it.

/// The writers' record of a page. It lies at the start of the page's chunk, in a page that lookups do not read.
struct alignas(8) IndexPageNote {
  std::uint64_t address;  ///< a code address that the page serves
  IndexPageNote* next;    ///< next free page
  std::uint16_t used;     ///< number of entries that lead to something
  std::uint8_t tier;
  std::uint8_t level;
  bool is_set_aside;
};

/// Only the holder of the writers' lock uses it.
class IndexPages {
 public:
  constexpr IndexPages() noexcept = default;

  /// Returns null if there is no memory. The page holds what it held when it was given back, or zeros.
  void* take() noexcept;
  /// Allocates nothing.
  void give_back(void* page) noexcept;

  static IndexPageNote& note_of(const void* at) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return reinterpret_cast<IndexPageNote*>(address & ~(k_huge_page - 1))[address / k_page_size % k_pages];
  }
  static void* page_of(IndexPageNote& note) noexcept;

  /// Counts pages that are taken, the few spare ones that still have memory, and those with notes.
  std::size_t bytes() const noexcept { return (taken_ + spare_ + chunks_ * k_notes) * std::size_t{k_page_size}; }

 private:
  static constexpr std::size_t k_pages = k_huge_page / k_page_size;  ///< pages in a chunk
  static constexpr std::size_t k_notes = k_pages * sizeof(IndexPageNote) / k_page_size;
  /// The pages of the first chunk. Further chunks are in huge pages, until one of their pages is given back.
  static constexpr std::size_t k_first_pages = 64;
  static constexpr std::size_t k_most_spare = 1024;
  static_assert(k_pages * sizeof(IndexPageNote) % k_page_size == 0);

  bool map_chunk() noexcept;
  static void strip(void* page) noexcept;

  IndexPageNote* first_spare_ = nullptr;  // spare pages that have memory
  IndexPageNote* first_bare_ = nullptr;   // spare pages that have none until they are written to
  std::byte* chunk_ = nullptr;            // the newest chunk
  std::size_t fresh_ = 0;                 // number of its first page that was never taken
  std::size_t end_ = 0;                   // number behind its last page that may be taken
  std::size_t taken_ = 0;
  std::size_t spare_ = 0;
  std::size_t chunks_ = 0;
};

/// Gives the memory of a page to the kernel. The page reads as zeros from now on.
void strip_page(void* page) noexcept;

class ProcedureIndex {
 public:
  /// Cells of class c have 128 * 8^c bytes. A procedure is of the smallest class whose cells are not smaller than it,
  /// so that it touches one cell or two neighbours.
  static constexpr unsigned k_classes = 15;
  static unsigned size_class(std::uint64_t start, std::uint64_t end) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width((end - start - 1) | 64));  // 7 for the smallest cell
    return std::min((bits - 5) / 3, k_classes - 1);
  }

  constexpr explicit ProcedureIndex(const NodePool& nodes) noexcept : nodes_(nodes) {}

  /// A cell is the registration number of the latest insertion << 32 | head link. A link is node << 1 | which of the
  /// node's two cells this is. Link 0 ends a chain.
  using Cell = std::atomic<std::uint64_t>;
  /// The cells of one procedure.
  struct Cells {
    unsigned size_class = 0;
    Cell* first = nullptr;
    Cell* last = nullptr;  ///< null if it has one cell only
  };

  // The caller of these holds the writers' lock.

  /// Makes the cells that a procedure needs, so that insert() cannot fail. They last until the next remove() or
  /// unreserve(). False: there is no memory.
  bool reserve(std::uint64_t start, std::uint64_t end, Cells& cells) noexcept;
  /// Undoes a reserve() whose procedure is not inserted.
  void unreserve(std::uint64_t start, std::uint64_t end) noexcept;
  /// Returns the reserved cells of a node.
  Cells cells(const ProcedureNode& node) noexcept;
  /// The node must be live and newer than all in the index, and `cells` must be its cells. O(1).
  void insert(NodeId id, ProcedureNode& node, const Cells& cells) noexcept;
  /// O(1). The node keeps its links, since lookups may be at it.
  void remove(ProcedureNode& node) noexcept;
  /// Returns true if so many pages have empty cells that trim() must be called before the next remove() or unreserve().
  bool has_too_many_empty() const noexcept { return set_aside_count_ > k_most_set_aside; }
  /// Gives back the pages that have been empty for longest. Lookups of their neighbourhood start again. O(1).
  void trim() noexcept;
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  // Any thread may call these at any time. They take no lock, allocate nothing and never wait; the length of the chains
  // bounds them.

  /// Prefetches the memory that remove() would touch now.
  void prefetch_removal(const ProcedureNode& node) const noexcept;

  /// The cells of an address, one for each class in use, and their latest insertions when they were first read.
  struct Snapshot {
    std::uint32_t classes;
    std::uint32_t drops;
    std::array<const std::atomic<std::uint64_t>*, k_classes> cells;  // null if there is none
    std::array<std::uint32_t, k_classes> insertions;
  };
  struct Answer {
    enum class Kind : std::uint8_t { found, none, interfered } kind = Kind::none;
    NodeId node = 0;
    NodeState state{};
  };

  /// The answer is `interfered` if a node on the way was made into another procedure's: a procedure has been registered
  /// meanwhile.
  Answer find(std::uint64_t pc, Snapshot& snapshot) const noexcept;
  /// Returns true if nothing was inserted into the cells of `pc` since the snapshot. Then an answer is right at the
  /// moment at which its node was last seen live, or for `none`, at the moment of this call.
  bool unchanged(std::uint64_t pc, const Snapshot& snapshot) const noexcept;

 private:
  // The classes form three tiers of five. Tier t scales everything by 2^15t. A region of 2^21 bytes has 16384 cells of
  // 2^7 (in 32 blocks that are made when they are needed), 2048 of 2^10 (in four), 256 of 2^13, 32 of 2^16 and four of
  // 2^19.
  static constexpr unsigned k_tier_classes = 5;
  static constexpr unsigned k_tier_bits = 15;
  static constexpr unsigned k_region_bits = 21;
  static constexpr unsigned k_table_bits = 15;
  static constexpr unsigned k_part_bits = k_region_bits + k_tier_bits;
  static_assert(k_region_bits + k_table_bits == k_part_bits, "a table, and a region of tier 1, are of one part");
  // Addresses are taken modulo 2^49. Those with the same remainder share cells, which costs time but gives no wrong
  // answers.
  static constexpr unsigned k_address_bits = 49;

  struct alignas(k_page_size) Block {
    std::array<Cell, 512> cells;
  };
  struct alignas(k_page_size) Region {
    std::array<std::atomic<Block*>, 32 + 4> blocks;
    std::array<Cell, 256 + 32 + 4> cells;
  };
  static_assert(sizeof(Block) == k_page_size && sizeof(Region) == k_page_size);
  /// Its pages have memory where there are regions.
  struct Table {
    std::array<std::atomic<Region*>, 1u << k_table_bits> regions;
  };
  static constexpr unsigned k_page_entries = k_page_size / sizeof(std::atomic<Region*>);
  /// The tables of 2^36 addresses.
  struct alignas(32) Part {
    std::atomic<Table*> table;         ///< tier 0
    std::atomic<Region*> region;       ///< tier 1
    std::atomic<std::uint32_t> drops;  ///< counted before and after cells, which must be empty, are dropped
  };
  struct Directory {
    std::array<Part, std::size_t{1} << (k_address_bits - k_part_bits)> parts;
    /// The number of regions in each page of the tables.
    std::array<std::uint16_t, (std::size_t{1} << (k_address_bits - k_region_bits)) / k_page_entries> regions;
  };
  /// The level that marks a page as a region instead of a block.
  static constexpr std::uint8_t k_whole_region = 2;
  static constexpr unsigned k_most_set_aside = 256;
  static constexpr unsigned k_set_aside_room = 2 * k_most_set_aside;

  static std::uint64_t scaled(std::uint64_t address, unsigned tier) noexcept {
    return (address & ((std::uint64_t{1} << k_address_bits) - 1)) >> (tier * k_tier_bits);
  }
  static unsigned cell_bits(unsigned size_class) noexcept { return 7 + 3 * size_class; }
  /// Returns whether both addresses fall into one cell.
  static bool same_cell(std::uint64_t a, std::uint64_t b, unsigned size_class) noexcept;

  static std::size_t part_number(std::uint64_t address) noexcept {
    return static_cast<std::size_t>(scaled(address, 0) >> k_part_bits);
  }
  static std::size_t region_number(std::uint64_t address) noexcept {
    return static_cast<std::size_t>(scaled(address, 0) >> k_region_bits);
  }
  static unsigned block_number(std::uint64_t scaled_address, unsigned level) noexcept;

  const Part* find_part(std::uint64_t address) const noexcept;
  static std::uint32_t drops(const Part* part) noexcept {
    return part == nullptr ? 0 : part->drops.load(std::memory_order_acquire);
  }
  const Region* find_region(const Part* part, std::uint64_t address, unsigned tier) const noexcept;
  static const Cell* cell_of(const Region& region, std::uint64_t scaled_address, unsigned level) noexcept;
  const Cell* find_cell(const Part* part, const Region* lowest, std::uint64_t address,
                        unsigned size_class) const noexcept;
  const Cell* find_cell(std::uint64_t address, unsigned size_class) const noexcept;
  std::atomic<Region*>* make_region_place(std::uint64_t address, unsigned tier) noexcept;
  Region* make_region(std::uint64_t address, unsigned tier) noexcept;
  /// Returns null if there is no memory.
  Cell* reserve_cell(std::uint64_t address, unsigned size_class) noexcept;
  bool make_cell_place(std::uint64_t address, unsigned size_class) noexcept;
  Cell* make_cell(std::uint64_t address, unsigned size_class) noexcept;
  Cell& cell(std::uint64_t address, unsigned size_class) noexcept;

  void push(NodeId id, ProcedureNode& node, unsigned side, Cell& cell) noexcept;
  void unlink(ProcedureNode& node, unsigned side, std::uint64_t address, unsigned size_class) noexcept;
  /// Sets `newest` to the first live node of the chain that covers `pc`, unless it is newer. False: interfered.
  bool walk(std::uint32_t first, unsigned size_class, std::uint64_t pc, Answer& newest) const noexcept;

  void unreserve_cell(std::uint64_t address, unsigned size_class) noexcept;
  void leave(IndexPageNote& note) noexcept;
  void set_aside_if_empty(IndexPageNote& note) noexcept;
  void drop(IndexPageNote& note) noexcept;
  void drop_block(const IndexPageNote& note) noexcept;
  void drop_region(const IndexPageNote& note, Part& part) noexcept;
  void count_bytes() noexcept;

  const NodePool& nodes_;
  std::atomic<std::uint32_t> classes_{0};  // bit c: class c has been used
  std::atomic<Directory*> directory_{nullptr};
  std::atomic<Region*> top_region_{nullptr};  // tier 2: one region covers all addresses, and stays

  alignas(64) IndexPages blocks_;
  IndexPages regions_;
  // A queue of pages in the order in which they became empty. trim() skips those that are in use again.
  std::array<IndexPageNote*, k_set_aside_room> set_aside_{};
  unsigned next_set_aside_ = 0;
  unsigned set_aside_count_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace jitunwind

// Records that are derived from the description of a procedure, such as its call frame information in another form. A
// procedure has one chain of records, which are made when somebody first needs them and are freed with the procedure;
// or it has one record that many procedures share. The memory is never unmapped, so a reader of a record whose
// procedure was cancelled meanwhile finds mapped bytes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {

/// A head and size() bytes behind it. A record is constant once it is published.
struct DerivedRecord {
  std::atomic<DerivedRecord*> next;  ///< published before, of the same procedure
  /// An older record. The addresses of the records between descend from this one's to that one's. Null if those of
  /// `next` do not.
  std::atomic<DerivedRecord*> far;
  AddrRange covers;    ///< its addresses; in a shared one, distances from the procedure's begin and end
  const void* data;    ///< what whoever made it wants to find first
  std::uint64_t base;  ///< likewise
  std::uint32_t cell;
  std::atomic<std::uint32_t> next_free;
  std::uint32_t size_class;
  std::uint32_t depth;  ///< so many behind it by `next` are of addresses that descend

  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t size() const noexcept;
};

/// The list of directives of a description, and in a bit whether it has a handler. 0: there is no list.
inline Addr list_of(const unw_dyn_info_t& info) noexcept {
  const Addr list = reinterpret_cast<std::uintptr_t>(info.u.pi.regions);
  if (info.format != UNW_INFO_FORMAT_DYNAMIC || list == 0 || list % 4 != 0) return 0;
  return list | (info.u.pi.handler != 0 ? 2 : 0);
}

class DerivedRecords {
 public:
  constexpr DerivedRecords() noexcept = default;

  // The holder of the writers' lock calls these.

  /// Maps what a procedure on this node may need, since those who need it later may not map memory: room for one record
  /// of average size and, if there is memory for it, for more records of long code. Returns false if there is none.
  bool make_ready(NodeId id, std::uint64_t code_size) noexcept {
    if (id >= ready_below_ && !grow(id)) return false;
    if (code_size > k_short_code) expect_more(cells_of_long(code_size));
    return true;
  }
  /// Frees the records of a procedure that is gone. The latest ones are used again last.
  void clear(NodeId id, std::uint64_t code_size) noexcept {
    if (code_size > k_short_code) expected_cells_ -= cells_of_long(code_size);
    if (any_.load(std::memory_order_relaxed)) clear_slot(id);
  }

  // Anyone may call these at any time. They take no lock, make no system call and do not wait.

  /// Returns a record with room for `bytes` behind the head, or null if there is no room. It has no owner until it is
  /// published.
  DerivedRecord* allocate(std::size_t bytes) noexcept;
  void give_back(DerivedRecord* record) noexcept;
  /// Publishes a record of a held node. If somebody else has published one of the same range, returns theirs and gives
  /// `record` back. Records that are published in ascending order are found in logarithmic time.
  const DerivedRecord* publish(NodeId id, DerivedRecord* record) noexcept;
  /// Gives a procedure without a record this one, which others have too, until one of its own is published.
  /// Preconditions: the node is held, and the record is never freed.
  void share(NodeId id, const DerivedRecord* record) noexcept;
  /// Returns null if there is none. The result means nothing if the node was reused meanwhile, which its state tells.
  const DerivedRecord* find(NodeId id, AddrRange procedure, std::uint64_t pc) const noexcept;
  /// Whether the procedure has exactly one record of its own.
  bool has_one(NodeId id) const noexcept;

  /// Notes the shape of a registration's code, or 0 if it has none. Replaces the note of the node's last registration.
  /// `forgotten` is times_forgotten() before the description was read.
  void set_shape(NodeId id, std::uint64_t registration, std::uint64_t forgotten, std::uint32_t shape) noexcept {
    const std::uint64_t note = note_of(registration, forgotten) | shape << 1;
    if (is_readable(id)) shapes_[id].store(note, std::memory_order_release);
  }
  /// Notes the list of directives of a registration that is being made, or 0. The caller holds the writers' lock.
  void set_list(NodeId id, Addr list) noexcept {
    shapes_[id].store(list == 0 ? 0 : (list + list_key(times_forgotten())) | 1, std::memory_order_release);
  }
  /// A note of a node. Plain words: others would be copied as vectors, which wait for the words that were just stored.
  struct Note {
    std::uint64_t word = 0;
    std::uint64_t forgotten = 0;  ///< times_forgotten() before

    /// Nothing: no shape is noted for that registration, or it was forgotten.
    std::optional<std::uint32_t> shape(std::uint64_t registration) const noexcept {
      if ((word & ~std::uint64_t{k_most_shape << 1}) != note_of(registration, forgotten)) return std::nullopt;
      return static_cast<std::uint32_t>(word >> 1 & k_most_shape);
    }
    /// The list of the node's registration, or 0.
    Addr list() const noexcept { return (word & 1) != 0 ? word - 1 - list_key(forgotten) : 0; }
  };
  /// It is of the node's registration if that is found unchanged afterwards.
  Note note(NodeId id) const noexcept {
    const std::uint64_t forgotten = times_forgotten();
    return {is_readable(id) ? shapes_[id].load(std::memory_order_acquire) : 0, forgotten};
  }
  /// Makes every note invalid.
  void forget_shapes() noexcept { times_forgotten_.fetch_add(1, std::memory_order_seq_cst); }
  std::uint64_t times_forgotten() const noexcept { return times_forgotten_.load(std::memory_order_acquire); }
  static constexpr unsigned k_shape_bits = 13;
  static constexpr std::uint32_t k_most_shape = (1u << k_shape_bits) - 1;

  /// Bytes that were handed out so far, including those that are free again.
  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(frontier_.load(std::memory_order_relaxed)) * sizeof(Cell);
  }

  /// Bytes for all shared records, reserved beside those of procedures.
  static constexpr std::size_t k_most_shared = std::size_t{2} << 20;
  static constexpr unsigned k_classes = 10;
  static constexpr std::size_t k_max_bytes = (std::size_t{64} << (k_classes - 1)) - sizeof(DerivedRecord);

 private:
  struct alignas(64) Cell {
    std::array<std::byte, 64> bytes;
  };
  static constexpr std::uint64_t k_cells_of_procedure = 4;
  static constexpr std::uint64_t k_spare_cells = (1u << 14) + k_most_shared / sizeof(Cell);
  static constexpr unsigned k_set_aside = 64;
  static constexpr std::uint64_t k_short_code = 4096;
  static constexpr std::uint64_t k_longest_code = 1u << 26;  // of longer code no more is expected

  /// Eight bytes for each byte of code, none of which is touched until it is needed. They suffice if every instruction
  /// is one byte, moves SP and saves a register: that is five bytes of call frame information, in a record of the next
  /// power of two.
  static constexpr std::uint64_t cells_of_long(std::uint64_t code_size) noexcept {
    return 8 * (std::min(code_size, k_longest_code) - k_short_code) / sizeof(Cell) + 1;
  }
  void expect_more(std::uint64_t cells) noexcept;
  bool map_cells() noexcept;
  bool grow(NodeId id) noexcept;
  void clear_slot(NodeId id) noexcept;
  DerivedRecord* pop(unsigned size_class) noexcept;
  DerivedRecord* carve(unsigned size_class) noexcept;
  DerivedRecord* at(std::uint32_t cell) const noexcept;

  /// The latest record of a node's own, a shared one, or 0 for none.
  class Slot {
   public:
    Slot() noexcept = default;
    explicit Slot(DerivedRecord* first) noexcept : word_(reinterpret_cast<std::uintptr_t>(first)) {}
    static Slot of_shared(const DerivedRecord* record) noexcept {
      Slot slot;
      slot.word_ = reinterpret_cast<std::uintptr_t>(record) | 1;
      return slot;
    }
    bool empty() const noexcept { return word_ == 0; }
    DerivedRecord* first() const noexcept { return is_shared() ? nullptr : record(); }
    const DerivedRecord* shared() const noexcept { return is_shared() ? record() : nullptr; }

   private:
    bool is_shared() const noexcept { return (word_ & 1) != 0; }
    DerivedRecord* record() const noexcept { return reinterpret_cast<DerivedRecord*>(word_ & ~std::uintptr_t{1}); }

    std::uintptr_t word_ = 0;
  };
  /// The note, without the shape.
  static std::uint64_t note_of(std::uint64_t registration, std::uint64_t forgotten) noexcept {
    return (registration + spread(forgotten)) << (k_shape_bits + 1);
  }
  /// A note of a list has this added, so that it names no list under another count.
  static Addr list_key(std::uint64_t forgotten) noexcept { return spread(forgotten) << 3; }
  bool is_readable(NodeId id) const noexcept { return id < readable_below_.load(std::memory_order_acquire); }
  Slot slot(NodeId id) const noexcept { return is_readable(id) ? slots_[id].load(std::memory_order_acquire) : Slot(); }

  GrowingArray<std::atomic<Slot>, 10, 20, Pages::small> slots_;  // as many as nodes
  /// A note for each node, of a registration, with the shape; the last bit says that it is the list. Registrations
  /// begin with 1.
  GrowingArray<std::atomic<std::uint64_t>, 10, 20, Pages::small> shapes_;
  GrowingArray<Cell, 14, 18, Pages::small> cells_;
  std::atomic<std::uint64_t> frontier_{0};      // cells behind were never handed out
  std::atomic<std::uint64_t> cells_mapped_{0};  // at least
  std::atomic<NodeId> readable_below_{0};
  std::atomic<bool> any_{false};  // something was published once
  std::atomic<std::uint64_t> times_forgotten_{0};
  /// A count of changes << 32 | cell + 1.
  std::array<std::atomic<std::uint64_t>, k_classes> free_{};

  NodeId ready_below_ = 0;
  std::uint64_t expected_cells_ = 0;  // of long code that is registered
  std::array<DerivedRecord*, k_set_aside> set_aside_{};
  unsigned next_set_aside_ = 0;
};

/// The answer for the newest procedure that covers an address.
struct DerivedAnswer {
  enum class Kind : std::uint8_t { no_procedure, no_record, found };
  Kind kind = Kind::no_procedure;
  const DerivedRecord* record = nullptr;  ///< valid until the procedure is cancelled
  std::uint64_t start = 0;                ///< of the procedure
};
/// Reads nothing of the descriptor, so it needs no hold. Answers `no_record` also if registrations interfered again and
/// again; a lookup by a hold then answers.
DerivedAnswer find_derived(std::uint64_t pc) noexcept;
/// Returns the record of a held procedure that covers the address, or null if there is none.
const DerivedRecord* find_derived(const ProcedureHold& hold, std::uint64_t pc) noexcept;
/// Whether the procedure has exactly one record of its own.
bool has_one_derived(const ProcedureHold& hold) noexcept;

/// The shape that is noted for the newest procedure that covers an address.
struct ShapeAnswer {
  DerivedRecords::Note note;
  AddrRange procedure{};  ///< empty: none covers the address
  RegistrationKey key{};
};
/// Reads nothing of the descriptor, so it needs no hold. Signal-safe.
ShapeAnswer find_noted_shape(std::uint64_t pc) noexcept;

/// Allocates a record that has no owner yet. Signal-safe.
DerivedRecord* allocate_derived(std::size_t bytes) noexcept;
void give_back_derived(DerivedRecord* record) noexcept;
/// Publishes a record of a held procedure.
const DerivedRecord* publish_derived(const ProcedureHold& hold, DerivedRecord* record) noexcept;
/// Shares a record that is never given back.
void share_derived(const ProcedureHold& hold, const DerivedRecord* record) noexcept;

}  // namespace jitunwind

// The registered procedures of a target, read from its memory: another process, a core file, callbacks.
// docs/registry.md "Finding the list" describes the list.
#pragma once

#include <cstdint>
#include <vector>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class WalkedListIndex;

/// The heads of a target's lists. Each copy of the library in the target has a list.
class ListHead {
 public:
  /// The address of the unw_dyn_info_list_t of that number, counted from 0; 0 when there are no more.
  virtual Result<Addr> list_head(std::size_t number, MemoryWindow& window) const noexcept = 0;

  /// If not null, the target is running. Then its space's memory has the state in which it was stopped, and this memory
  /// has the current state. Old bytes are valid as long as the list has not changed since.
  virtual const Memory* memory_now() const noexcept { return nullptr; }

  /// The place and number of the last changes that the list of that number keeps: docs/registry.md "Finding the list".
  struct Changes {
    Addr at = 0;  ///< 0 if there are none
    std::uint32_t kept = 0;
  };
  virtual Changes changes_of(std::size_t number) const noexcept {
    (void)number;
    return {};
  }

  /// The index that keeps the procedures of the list of that number between questions. If it is null, the list is
  /// walked for each question. `is_changing`: its generation is odd.
  virtual WalkedListIndex* index_of(std::size_t number, bool is_changing) const noexcept {
    (void)number, (void)is_changing;
    return nullptr;
  }

  /// The largest number of lists that are read.
  static constexpr std::size_t k_most = 16;

 protected:
  ~ListHead() = default;
};

/// The procedures in a target's lists as a source of rows, procedures and names. It reads only the target's memory, and
/// keeps state only in ListHead::index_of(). A list that changes meanwhile is read again, up to 8 times and as long as
/// the question has taken no more than 2^20 reads. The work is bounded whatever the memory holds. Signal-safe when the
/// memory is and no index is kept.
class TargetList final : public RowSource, public NameSource {
 public:
  /// `head` must outlive this.
  explicit TargetList(const ListHead& head) noexcept : head_(head) {}

  /// Fails when the list cannot be read or has an unknown version.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;

 private:
  const ListHead& head_;
};

/// Appends the code of every procedure in the lists, the newest of each list first. A list that is broken, or that a
/// writer changes meanwhile, is followed as far as it leads. Throws std::bad_alloc.
void append_listed_code(const ListHead& head, Lookup& lookup, std::vector<AddrRange>& out);

}  // namespace jitunwind
#pragma GCC visibility pop

// The registered procedures of a target, read out of its memory: another process, a core file, callbacks. What the list
// looks like: docs/registry.md "Finding the list".
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class ListIndex;

/// Where a target's lists begin: each copy of the library in it has one.
class ListHead {
 public:
  /// The address of the unw_dyn_info_list_t of that number, from 0 on; 0: there are no more.
  virtual Result<Addr> list_head(std::size_t number, MemoryWindow& window) const noexcept = 0;

  /// Not null: the target runs, and its space's memory says what it was when it was stopped; this says what it is. What
  /// is read counts as long as the list has not changed since.
  virtual const Memory* memory_now() const noexcept { return nullptr; }

  /// Where the last changes of the list of that number are kept, and how many: docs/registry.md "Finding the list".
  struct Changes {
    Addr at = 0;  ///< 0: nowhere
    std::uint32_t kept = 0;
  };
  virtual Changes changes_of(std::size_t number) const noexcept {
    (void)number;
    return {};
  }

  /// Where the procedures of the list of that number are kept by address, between one question and the next; null: the
  /// list is walked for each question. `is_changing`: its generation is odd.
  virtual ListIndex* index_of(std::size_t number, bool is_changing) const noexcept {
    (void)number, (void)is_changing;
    return nullptr;
  }

  /// More are not asked for.
  static constexpr std::size_t k_most = 16;

 protected:
  ~ListHead() = default;
};

/// Procedures of a target's lists as a source of rows, procedures and names. Reads nothing but the target's memory;
/// what it keeps is in ListHead::index_of() alone. A list that is changed meanwhile is read again, 8 times at most and
/// as long as no more than 2^20 reads were made for the question. Bounded, whatever the memory holds. Signal-safe where
/// the memory is and nothing is kept.
class TargetList final : public RowSource, public NameSource {
 public:
  /// `head` must outlive this.
  explicit TargetList(const ListHead& head) noexcept : head_(head) {}

  /// An error where the list cannot be read, or is of an unknown version.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;

 private:
  const ListHead& head_;
};

}  // namespace jitunwind
#pragma GCC visibility pop

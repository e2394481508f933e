// The registered procedures of a target, read out of its memory: another process, a core file, callbacks. What the list
// looks like: docs/registry.md "Finding the list".
#pragma once

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Where a target's list begins: the address of its unw_dyn_info_list_t, 0 where it has none.
class ListHead {
 public:
  virtual Result<Addr> list_head(MemoryWindow& window) const noexcept = 0;

 protected:
  ~ListHead() = default;
};

/// Procedures of a target's list as a source of rows, procedures and names. Reads nothing but the target's memory and
/// keeps nothing; a list that is changed meanwhile is read again, 8 times at most and as long as no more than 2^20
/// reads were made for the question. Bounded, whatever the memory holds. Signal-safe where the memory is.
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

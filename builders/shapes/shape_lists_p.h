// Region lists in one block of memory: built from vectors, compared and hashed by content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {

/// One region before it has a place in memory.
struct RegionSpec {
  std::int32_t insn_count = 0;
  std::vector<unw_dyn_op_t> ops;
  std::vector<std::uint32_t> said;  ///< for each op, ProcedureDraft::Placed::said of its idiom
};

/// An immutable, contiguous region list.
class RegionList {
 public:
  RegionList() noexcept = default;
  explicit RegionList(std::span<const RegionSpec> regions);

  /// Null when there are no regions.
  unw_dyn_region_info_t* first() const noexcept { return reinterpret_cast<unw_dyn_region_info_t*>(storage_.get()); }
  std::size_t bytes() const noexcept { return bytes_; }

  std::uint64_t hash() const noexcept;
  /// Compares counts and directives in order.
  friend bool operator==(const RegionList& a, const RegionList& b) noexcept;

 private:
  std::unique_ptr<std::byte[]> storage_;
  std::size_t bytes_ = 0;
};

/// A descriptor of a procedure of so many bytes at address 0, so that its addresses are code offsets.
unw_dyn_info_t descriptor_at_zero(const unw_dyn_region_info_t* regions, std::uint64_t bytes) noexcept;

/// Every offset, once, at which a directive of the list takes effect or a region begins: those from the start
/// ascending, then those from the end ascending. A procedure's first byte is always included.
std::vector<CodeOffset> boundaries(const unw_dyn_region_info_t* regions, const Arch& arch);

/// Number of bytes that the list covers at least: the sum of all regions.
std::uint64_t covered_bytes(const unw_dyn_region_info_t* regions, const Arch& arch) noexcept;

/// "region 7\n  ADD rsp,24 @3\n".
std::string regions_text(const unw_dyn_region_info_t* regions, const Arch& arch);

// The rows of a shape, packed: a FrameRow has room for 40 rules and its own expressions, but most rows have a handful.

/// An immutable list.
class RowList {
 public:
  /// Memory of the rows' expressions, shared with the draft that gave the rows.
  using Pools = std::vector<std::shared_ptr<const ExpressionPool>>;

  RowList() noexcept = default;
  struct Placed {
    CodeOffset offset;
    const FrameRow* row;
  };
  RowList(const std::vector<Placed>& rows, Pools pools);

  std::size_t size() const noexcept { return rows_.size(); }
  bool empty() const noexcept { return rows_.empty(); }
  CodeOffset offset(std::size_t i) const noexcept { return rows_[i].offset; }
  /// Expressions point into the list.
  FrameRow row(std::size_t i) const noexcept;

  std::size_t bytes() const noexcept;
  std::uint64_t hash() const noexcept;
  /// Expressions compare by bytes.
  friend bool operator==(const RowList& a, const RowList& b) noexcept;

 private:
  struct Packed {
    CodeOffset offset;
    CfaRule cfa;
    std::uint32_t args_size;
    std::uint32_t entries_end;  // in entries_; a row's entries begin at the end of the row before
    RegNum ra;
    bool signal_frame;
    friend bool operator==(const Packed&, const Packed&) noexcept = default;
  };

  std::vector<Packed> rows_;
  std::vector<FrameRow::Entry> entries_;
  Pools pools_;
};

}  // namespace jitunwind

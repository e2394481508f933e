// Converts a draft to regions: the place of each directive and the unit in which it takes effect.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/builders/shapes/region_list_p.h"

namespace jitunwind {

/// Lays a draft out. Directives outside any region become one region or two: the beginning, and the end that is counted
/// from the procedure's end. Two regions let procedures with different bodies share a shape.
class DraftLayout {
 public:
  explicit DraftLayout(const DraftRecord& draft);

  std::vector<RegionSpec> regions;
  std::vector<Finding> findings;

 private:
  using Placed = DraftRecord::Placed;
  /// A range in units; a start from the end is negative.
  struct Extent {
    std::int64_t start;
    std::int64_t count;
    bool from_end() const noexcept { return start < 0; }
  };

  void add_explicit(const DraftRecord::Region& region);
  void add_automatic(const DraftRecord::Region& region);
  void add(const Extent& extent, std::vector<const Placed*> directives);
  std::optional<std::int64_t> tail_begin(const DraftRecord::Region& region) const;
  std::optional<std::int64_t> end_unit(const Placed& placed) const;
  std::int64_t from_end(std::int64_t offset, const Instruction& at) const;

  std::int32_t place(const Placed& placed, const Extent& extent);
  std::int32_t place(const Instruction& at, const Extent& extent);
  unw_dyn_op_t encode(const Placed& placed, std::int32_t when);
  int number_of(RegNum reg);
  unw_word_t label_number(std::int64_t remembered);
  void split_last();
  [[gnu::cold]] void refuse(ErrorCode code, std::int64_t offset, const std::string& reason);

  const Arch& arch_;
  const std::vector<SaidInstruction>& said_;
  const Placed* placing_ = nullptr;
  std::uint32_t refused_ = 0;
  std::optional<std::int64_t> size_;    // bytes
  std::int64_t next_start_ = 0;         // units
  std::set<unw_word_t> labels_in_use_;  // by explicit directives
  std::vector<unw_word_t> free_labels_;
  bool pops_frames_ = false;
};

}  // namespace jitunwind

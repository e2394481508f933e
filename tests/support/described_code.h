// Rows of code that is described but not registered, for a judge that is to judge the description itself.
#pragma once

#include <utility>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind::test {

class DescribedCode final : public RowSource {
 public:
  void add(AddrRange range, Description description) { code_.push_back({range, std::move(description)}); }

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    for (const auto& [range, description] : code_) {
      if (!range.contains(lookup.at.lookup())) continue;
      auto row = description.row(lookup.at.lookup() - range.begin, range.size());
      if (!row) return row.error();
      out = *row;
      return true;
    }
    return false;
  }

 private:
  std::vector<std::pair<AddrRange, Description>> code_;
};

}  // namespace jitunwind::test

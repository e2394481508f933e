// Readers of a segment's tables in this process, which come while functions are appended, published and withdrawn.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/code_segments/small_segment.h"
#include "tests/code_segments/symbols_of.h"

namespace jitunwind::test {

/// Asks dladdr(), libgcc_s, and this library's reader of call frame information.
class SegmentReaders {
 public:
  struct Known {
    Addr start = 0;
    std::string name, other;
  };

  explicit SegmentReaders(SmallSegment& small) : small_(small) {}

  /// A function that everyone knows before and after the change.
  void expect_known(Segment::Index index, const char* name) { known_.push_back({start(index), name, ""}); }
  /// A function that is known or not, and that has one of two names.
  void expect_changing(Segment::Index index, const char* name, const char* other = "") {
    changing_ = {{start(index), name, other}};
  }

  void look() {
    for (const Known& known : known_) {
      const char* const name = symbol_at(known.start + 1);
      expect(name != nullptr && name == known.name, "dladdr() names another function wrongly");
      expect(search_(known.start + 1) == known.start, "libgcc_s finds another function wrongly");
    }
    for (const Known& changing : changing_) {
      const char* const name = symbol_at(changing.start + 1);
      const bool is_right = name == nullptr || name == changing.name || name == changing.other;
      expect(is_right, "dladdr() names the function wrongly");
      const Addr function = search_(changing.start + 1);
      expect(function == 0 || function == changing.start, "libgcc_s finds the function wrongly");
      known_by_name += name != nullptr;
      known_by_frame += function != 0;
    }
    read_in_order();
  }

  const char* wrong = nullptr;  ///< the first wrong answer
  std::size_t known_by_name = 0, known_by_frame = 0;

 protected:
  void expect(bool right, const char* what) {
    if (!right && wrong == nullptr) wrong = what;
  }

  Addr start(Segment::Index index) const { return small_.segment->start((*small_.segment)[index]); }

  SmallSegment& small_;
  std::vector<Known> known_, changing_;

 private:
  /// Reads the section from its begin to its end, as debuggers do.
  void read_in_order() {
    const Addr begin = small_.segment->memory().image() + small_.layout.frames;
    const auto* const bytes = reinterpret_cast<const std::byte*>(as_pointer(begin));
    SectionView view({{bytes, small_.layout.frames_bytes}, begin});
    const CfiContext context{.arch = local_space().arch};
    FdeScan scan(view, context, {begin, begin + small_.layout.frames_bytes});
    std::size_t of_known = 0;
    for (Fde fde;;) {
      const Result<bool> next = scan.next(fde);
      expect(static_cast<bool>(next), "the section is not whole");
      if (!next || !*next) break;
      for (const Known& known : known_) of_known += fde.range.begin == known.start && fde.range.size() != 0;
      expect(fde.range.size() == 0 || fde.range.size() == sizeof FrameCode::k_bytes, "an entry of another size");
      expect_apart(fde.range);
    }
    expect(of_known == known_.size(), "an entry is missing");
    entries_ = 0;
  }

  /// Readers that keep one entry for each address must not keep that of no code for a function's.
  void expect_apart(const AddrRange& code) {
    const auto end = [](const AddrRange& range) { return std::max(range.end, range.begin + 1); };
    for (std::size_t i = 0; i < entries_; ++i) {
      const AddrRange& other = seen_[i];
      const bool is_apart = end(code) <= other.begin || end(other) <= code.begin;
      expect(is_apart || (code.size() == 0 && other.size() == 0), "two entries have an address in common");
    }
    expect(entries_ < seen_.size(), "more entries than are compared");
    if (entries_ < seen_.size()) seen_[entries_++] = code;
  }

  const LibgccSearch search_;
  std::array<AddrRange, 64> seen_{};
  std::size_t entries_ = 0;
};

}  // namespace jitunwind::test

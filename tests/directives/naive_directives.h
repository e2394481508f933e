// A second implementation of directives, written to be read: it keeps every state and rebuilds nothing. The library's
// machine is compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/rows/row_case.h"

namespace jitunwind::test {

/// Rules by which another interpreter of directives differs from docs/directives.md.
enum OtherRules : unsigned {
  k_documented = 0,
  k_stale_places = 1,     ///< places relative to an SP of unknown distance outlive that SP, and unknown moves
  k_strict_fp = 2,        ///< a frame pointer register must be saved by an earlier instruction, else: error
  k_saved_is_kept = 4,    ///< a scratch register that was ever saved stays frame pointer when SP is reloaded from it
  k_unknown_copy = 8,     ///< a copy of SP whose distance nobody knows is the CFA
  k_order_of_saves = 16,  ///< saves of one instruction see what those before them in the list did to the frame pointer
  k_other = 31,
};

struct NaiveAnswer {
  ErrorCode error = ErrorCode::unspecified;  ///< unspecified: there is a row
  FrameRow row;
};

/// Returns the row at `offset` bytes of `regions`, which have no ALIAS; `of_call` selects the after-call rule.
NaiveAnswer naive_row(const Arch& arch, std::uint64_t size, const std::vector<rows::CaseRegion>& regions,
                      std::uint64_t offset, bool of_call, unsigned other = k_documented);

}  // namespace jitunwind::test

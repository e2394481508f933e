// Converts the row of a frame that was built elsewhere to directives: the inverse of reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/builders/draft/procedure_draft.h"

namespace jitunwind {

struct EntryStateError {
  ErrorCode code = ErrorCode::invalid_argument;
  const char* what = "";  ///< never dies
  std::string reason;     ///< the same with the row
};

/// The directives of consecutive empty regions, one simulated instruction each, after which the row of a procedure is
/// `row`. `sp_distance` is CFA - SP where it is known. The result is interpreted and compared with `row`; a row that
/// directives cannot express is refused.
Result<std::vector<std::vector<DraftDirective>>, EntryStateError> plan_entry_state(
    const FrameRow& row, const Arch& arch, std::optional<std::int64_t> sp_distance);

}  // namespace jitunwind

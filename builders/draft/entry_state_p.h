// A frame that was built elsewhere, as directives: the inverse of reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/builders/draft/procedure_draft.h"

namespace jitunwind {

struct EntryStateError {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string reason;
};

/// The directives of consecutive empty regions, one simulated instruction each, behind which the row of a procedure is
/// `row`. `sp_distance` is CFA - SP where it is known. Refuses rows that directives cannot say: the result is
/// interpreted and compared with `row`.
Result<std::vector<std::vector<DraftDirective>>, EntryStateError> plan_entry_state(
    const FrameRow& row, const Arch& arch, std::optional<std::int64_t> sp_distance);

}  // namespace jitunwind

#include "unwind_core/row_cache.h"

namespace jitunwind {

bool lasts(RowOrigin origin) noexcept {
  return origin == RowOrigin::dyn_directives || origin == RowOrigin::dyn_table || origin == RowOrigin::eh_frame ||
         origin == RowOrigin::debug_frame;
}

void RowCache::keep(const KeptRows::Question& question, const FrameRow& row) const noexcept {
  KeptRows::Answer answer{{}, row.origin};
  if (question.version != 0 && lasts(row.origin) && compact(row, layout, answer.row)) table.keep(question, answer);
}

}  // namespace jitunwind

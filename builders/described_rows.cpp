#include "jitunwind/builders/described_rows.h"

#include "jitunwind/builders/shapes/region_list_p.h"
#include "jitunwind/dyn_info/directives/directive_run_internal.h"

namespace jitunwind {

struct DescribedRows::Run {
  Run(const Description& description, std::uint64_t bytes)
      : info(descriptor_at_zero(description.shape().regions(), bytes)),
        directives(info, description.arch()),
        outcome(description.arch()) {}

  const unw_dyn_info_t info;
  DirectiveRun directives;
  DirectiveOutcome outcome;
};

DescribedRows::DescribedRows(const Description& description, std::uint64_t bytes)
    : description_(description), bytes_(bytes) {
  if (!description.shape().has_rows()) run_ = std::make_unique<Run>(description, bytes);
}

DescribedRows::~DescribedRows() = default;

Result<FrameRow> DescribedRows::row(std::uint64_t offset) noexcept {
  FrameRow row;
  if (const Status found = this->row(offset, row); !found) return found.error();
  return row;
}

Status DescribedRows::row(std::uint64_t offset, FrameRow& out) noexcept {
  if (!run_) {
    const Result<FrameRow> row = description_.row(offset, bytes_);
    if (!row) return row.error();
    out = *row;
    return Done{};
  }
  if (const Status fits = description_.check_size(bytes_); !fits) return fits.error();
  if (offset >= bytes_) return Error{ErrorCode::e_range, offset, "code offset behind the procedure"};
  if (const Status ran = run_->directives.go_to(offset, run_->outcome); !ran) return ran.error();
  return make_own_row(run_->outcome, out);
}

}  // namespace jitunwind

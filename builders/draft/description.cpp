#include "jitunwind/builders/description.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "jitunwind/builders/described_rows.h"
#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/builders/shapes/shape_lists_p.h"
#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {
namespace {

/// Converts a place in a procedure of `bytes` to an offset from its start.
std::uint64_t from_start(CodeOffset offset, std::uint64_t bytes) noexcept {
  return offset < 0 ? bytes + static_cast<std::uint64_t>(offset) : static_cast<std::uint64_t>(offset);
}

/// Error messages are never freed, because an Error does not own its text. Only a mistake in a program makes two sizes
/// differ, so there are few such texts.
const char* two_sizes(const char* before, std::uint64_t one, const char* between, std::uint64_t other) noexcept {
  constexpr std::size_t k_most = 256;
  constexpr const char* k_without_sizes = "described for another size";
  static constinit std::mutex lock;
  static constinit std::set<std::string>* texts = nullptr;
  try {
    const std::unique_lock guard(lock, std::try_to_lock);  // not blocking: in a forked child the owner may be gone
    if (!guard) return k_without_sizes;
    if (texts == nullptr) texts = new std::set<std::string>;
    if (texts->size() == k_most) return k_without_sizes;
    return texts->insert(before + std::to_string(one) + between + std::to_string(other)).first->c_str();
  } catch (const std::bad_alloc&) {
    return k_without_sizes;
  }
}

}  // namespace

std::string BuildError::text() const {
  std::string all;
  for (const Finding& f : findings) all += f.text() + "\n";
  return all;
}

const Finding& BuildError::decisive() const noexcept {
  const auto wrong = std::ranges::find_if_not(findings, is_warning, &Finding::code);
  return wrong != findings.end() ? *wrong : findings.front();
}

Description::Description(FrameShape shape, Facts facts) noexcept : shape_(std::move(shape)), facts_(std::move(facts)) {}
Description::Description(const Description& other) = default;
Description::Description(Description&& other) noexcept = default;
Description& Description::operator=(const Description& other) = default;
Description& Description::operator=(Description&& other) noexcept = default;
Description::~Description() = default;

Description Description::renamed(std::string name) const {
  Description out = *this;
  out.facts_.name = std::move(name);
  return out;
}

int Description::format() const noexcept {
  return shape_.has_rows() ? UNW_INFO_FORMAT_IP_OFFSET : UNW_INFO_FORMAT_DYNAMIC;
}

std::uint64_t Description::min_size() const noexcept {
  return std::max(shape_.min_size(), facts_.handlers ? facts_.handlers->min_size : 0);
}

Status Description::check_size(std::uint64_t bytes) const noexcept {
  if (bytes == 0) return Error{ErrorCode::e_range, 0, "procedure without code"};
  if (bytes % arch().unit != 0) return Error{ErrorCode::e_range, bytes, "size not a multiple of the instruction unit"};
  if (size() && *size() != bytes)
    return Error{ErrorCode::e_range, bytes, two_sizes("described for ", *size(), " bytes, registered with ", bytes)};
  if (facts_.handlers && bytes < facts_.handlers->min_size)
    return Error{ErrorCode::e_landing_pad, bytes, "call sites or landing pads lie behind the procedure"};
  if (bytes < min_size())
    return Error{ErrorCode::e_overlap, bytes,
                 two_sizes("what is described takes ", min_size(), " bytes, more than ", bytes)};
  return Done{};
}

Result<FrameRow> Description::row(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (const Status fits = check_size(bytes); !fits) return fits.error();
  if (offset >= bytes) return Error{ErrorCode::e_range, offset, "code offset behind the procedure"};
  FrameRow row;
  if (!shape_.has_rows()) {
    const unw_dyn_info_t info = descriptor_at_zero(shape_.regions(), bytes);
    const Status found = directive_row(info, arch(), CodeAddress::interrupted(offset), nullptr, row);
    if (!found) return found.error();
    return row;
  }
  const auto begin_of = [&](std::size_t i) { return from_start(shape_.row_offset(i), bytes); };
  // Rows are in ascending order for every size that fits; the search finds the first row after `offset`.
  std::size_t next = 0;
  for (std::size_t end = shape_.row_count(); next < end;) {
    const std::size_t middle = next + (end - next) / 2;
    if (begin_of(middle) <= offset)
      next = middle + 1;
    else
      end = middle;
  }
  row = next == 0 ? entry_row(arch()) : shape_.row(next - 1).row;
  row.range = {next == 0 ? 0 : begin_of(next - 1), next == shape_.row_count() ? bytes : begin_of(next)};
  row.origin = RowOrigin::dyn_table;
  return row;
}

std::string Description::to_text(std::uint64_t bytes) const {
  std::vector<CodeOffset> offsets;
  if (shape_.has_rows())
    for (std::size_t i = 0; i < shape_.row_count(); ++i) offsets.push_back(shape_.row_offset(i));
  else
    offsets = boundaries(shape_.regions(), arch());

  std::string text;
  FrameRow last;
  DescribedRows rows(*this, bytes);
  for (const CodeOffset offset : offsets) {
    const std::uint64_t at = from_start(offset, bytes);
    if (at >= bytes) continue;
    const auto here = rows.row(at);
    if (here && *here == last) continue;
    if (here) {
      last = *here;
      text += jitunwind::to_text(at, last, arch()) + "\n";
    } else {
      text += jitunwind::to_text(at, FrameRow{}, arch()) + "  " + error_name(here.error().code) + ": " +
              here.error().what + "\n";
    }
  }
  return text;
}

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

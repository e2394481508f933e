#include "jitunwind/sdk/exceptions/fde_writer_p.h"

#include <algorithm>

#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind {
namespace {

/// A lookup does not tell how far a row holds that comes from an ALIAS: every instruction unit needs a lookup. This is
/// the limit of their number.
constexpr unsigned k_max_lookups = 4096;

constexpr Error k_too_much_alias{ErrorCode::e_alias_depth, 0, "code that is described by ALIAS is too long"};
constexpr Error k_no_row{ErrorCode::no_info, 0, "procedure without a row"};

}  // namespace

void FdeWriter::begin(const FrameRow& first) noexcept {
  // Only a personality routine reads language-specific data.
  const bool has_lsda = procedure_.handler != 0 && procedure_.lsda != 0;
  const std::int64_t data_alignment = slots_ == Slots::of_bytes ? -1 : 0;
  const bool by_b = first.signing_key == SigningKey::b;
  writer_.begin_cie({procedure_.handler, has_lsda, first.signal_frame, by_b, first.ra, data_alignment});
  fde_at_ = writer_.size();
  writer_.begin_fde(procedure_.range, procedure_.lsda);
  started_ = true;
}

bool FdeWriter::put(Addr at, const FrameRow& row) noexcept {
  if (!started_) begin(row);
  if (const Status written = writer_.row(at - procedure_.range.begin, row); !written) {
    const bool slots = slots_ == Slots::of_words && written.error().code == ErrorCode::invalid_argument;
    return end(slots ? Outcome::other_slots : Outcome::failed, written.error());
  }
  return writer_.size() <= most_ || end(Outcome::too_long);
}

bool FdeWriter::row(const FrameRow& row) noexcept {
  in_gap_ = false;
  cfa_ = row.cfa.kind == CfaRule::Kind::expression ? CfaRule{} : row.cfa;  // its bytes are borrowed
  ra_ = row.ra;
  signal_frame_ = row.signal_frame;
  return put(row.range.begin, row);
}

/// Code without a row has no caller. Its CFA and return column are those of the row before, or else those of the entry.
bool FdeWriter::no_row(AddrRange code, const Error& why) noexcept {
  if (code.contains(pc_)) return end(Outcome::failed, why);
  if (in_gap_) return true;
  in_gap_ = true;
  FrameRow outermost = entry_row(local_space().arch);
  if (cfa_.kind != CfaRule::Kind::none) outermost.cfa = cfa_;
  if (ra_ != k_no_reg) outermost.ra = ra_;
  outermost.signal_frame = signal_frame_;
  outermost.clear_rules();
  (void)outermost.set(outermost.ra, RegRule::undefined());
  return put(code.begin, outermost);
}

/// Looks up one row; returns the place where the next one may be.
Addr FdeWriter::look_up(Addr at) noexcept {
  if (++lookups_ > k_max_lookups) {
    if (!in_gap_) (void)end(Outcome::too_long, k_too_much_alias);
    return code_.end;
  }
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
  FrameRow row;
  const Found found = dyn_row_source().find_row(lookup, row);
  behind_alias_ = !found || !*found || !row.range.contains(at);
  const AddrRange here{at, std::min(code_.end, behind_alias_ ? at + local_space().arch.unit : row.range.end)};
  if (found && *found) {
    row.range = here;
    (void)this->row(row);
  } else {
    (void)no_row(here, found ? k_no_row : found.error());
  }
  return here.end;
}

FdeWriter::Outcome FdeWriter::write() noexcept {
  for (Addr at = code_.begin; at < code_.end && going_on();) {
    if (behind_alias_) {
      at = look_up(at);
      continue;
    }
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
    const Result<Addr> told = tell_registered_rows({at, code_.end}, lookup, *this);
    if (!told) return end(Outcome::failed, told.error()), outcome_;
    at = *told;
    behind_alias_ = true;
  }
  return finish();
}

FdeWriter::Outcome FdeWriter::finish() noexcept {
  if (!going_on()) return outcome_;
  writer_.end_fde();
  writer_.terminate();
  if (writer_.size() > most_) (void)end(Outcome::too_long);
  return outcome_;
}

}  // namespace jitunwind

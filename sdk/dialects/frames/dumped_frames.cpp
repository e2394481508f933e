#include "jitunwind/sdk/dialects/frames/dumped_frames.h"

#include <span>

#include "jitunwind/sdk/dialects/frames/frame_copy_p.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

/// Reads the section entry by entry, as if it stood at its place behind the code.
class PlacedFrames {
 public:
  PlacedFrames(std::span<const std::byte> bytes, const AddrRange& code, const Arch& arch) noexcept
      : code_(code),
        begin_(code.begin + (code.size() + 7) / 8 * 8),
        context_{.arch = arch, .section = begin_},
        view_({bytes, begin_}),
        scan_(view_, context_, {begin_, begin_ + bytes.size()}) {}
  PlacedFrames(const PlacedFrames&) = delete;
  PlacedFrames& operator=(const PlacedFrames&) = delete;

  /// Returns false if there are no more entries.
  bool next(Fde& out) noexcept {
    while (!scan_.at_end()) {
      const Result<bool> found = scan_.next(out);
      if (found && !*found) return false;
      const AddrRange& range = out.range;
      if (found && range.begin >= code_.begin && range.begin < range.end && range.end <= code_.end) return true;
    }
    return false;
  }
  bool find(Addr at, Fde& out) noexcept {
    while (next(out))
      if (out.range.contains(at)) return true;
    return false;
  }
  const CfiContext& context() const noexcept { return context_; }

 private:
  AddrRange code_;
  Addr begin_;
  CfiContext context_;
  SectionView view_;
  FdeScan scan_;
};

}  // namespace

Found DumpedFrames::find_row(const AddrRange& code, Addr at, const Arch& arch, FrameRow& out) const noexcept {
  Fde fde;
  PlacedFrames frames(bytes_, code, arch);
  if (!frames.find(at, fde)) return false;
  if (const Status row = row_at(fde, frames.context(), at, out); !row) return row.error();
  out.origin = RowOrigin::eh_frame;
  out.keeps_by = KeepsBy::nothing;  // nobody reports when other code replaces it
  return true;
}

Found DumpedFrames::find_procedure(const AddrRange& code, Addr at, const Arch& arch,
                                   ProcedureInfo& out) const noexcept {
  Fde fde;
  PlacedFrames frames(bytes_, code, arch);
  if (!frames.find(at, fde)) return false;
  out = {};
  out.range = fde.range;
  out.origin = RowOrigin::eh_frame;
  return true;
}

std::vector<DumpedFrames::Entry> DumpedFrames::write(const AddrRange& code, const Arch& arch,
                                                     std::vector<std::byte>& into) const {
  std::vector<Entry> entries;
  Fde fde;
  for (PlacedFrames frames(bytes_, code, arch); frames.next(fde);)
    if (const auto at = copy_frames(fde, frames.context(), into)) entries.push_back({fde.range, *at});
  return entries;
}

}  // namespace jitunwind

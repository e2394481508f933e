#include "jitunwind/sdk/dialects/frames/dumped_frames.h"

#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/sdk/dialects/jitdump_format_internal.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_first_room = 512, k_most_room = k_first_room << 15;  // of an entry that is written anew

/// Writes a CIE and an FDE and returns the FDE's offset. Nothing: a row is broken or cannot be written.
std::optional<std::size_t> write_entry(const Fde& fde, const CfiContext& context, std::int64_t data_alignment,
                                       EhFrameWriter& writer) noexcept {
  writer.begin_cie({.signal_frame = fde.cie.signal_frame,
                    .signed_with_b_key = fde.cie.signed_with_b_key,
                    .return_address = fde.cie.return_address,
                    .data_alignment = data_alignment});
  FrameRow row;
  FdeRows rows(fde, context, row);
  std::size_t fde_at = 0;
  for (Addr at = fde.range.begin; at < fde.range.end; at = row.range.end) {
    const Result<bool> next = rows.next_behind(at);
    if (!next || !*next || !row.range.contains(at)) return std::nullopt;
    if (at == fde.range.begin) {
      fde_at = writer.size();
      writer.begin_fde(fde.range, 0);
    }
    if (!writer.row(at - fde.range.begin, row)) return std::nullopt;
  }
  writer.end_fde();
  return fde_at;
}

}  // namespace

std::optional<std::size_t> copy_frames(const Fde& fde, const CfiContext& context, std::vector<std::byte>& into) {
  const std::size_t begin = into.size();
  for (const std::int64_t alignment : {-std::int64_t{context.arch.word_size}, std::int64_t{-1}}) {
    for (std::size_t room = k_first_room; room <= k_most_room; room *= 8) {
      into.resize(begin + room);
      EhFrameWriter writer(context.arch, std::span(into).subspan(begin));
      const auto fde_at = write_entry(fde, context, alignment, writer);
      if (!fde_at) break;
      if (!writer.fits()) continue;
      into.resize(begin + writer.size());
      return begin + *fde_at;
    }
  }
  into.resize(begin);
  return std::nullopt;
}

/// Reads the section as if it stood at its place behind the code.
class DumpedFrames::Placed {
 public:
  Placed(std::span<const std::byte> bytes, const AddrRange& code, const Arch& arch) noexcept
      : code_(code),
        begin_(jitdump::frames_behind(code.begin, code.end)),
        context_{.arch = arch, .section = begin_},
        view_({bytes, begin_}),
        scan_(view_, context_, {begin_, begin_ + bytes.size()}) {}
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  /// Reads the next entry. Returns false if there are no more.
  bool next(Fde& out) noexcept {
    while (!scan_.at_end()) {
      const Result<bool> found = scan_.next(out);
      if (found && !*found) return false;
      const AddrRange& range = out.range;
      if (found && range.begin >= code_.begin && range.begin < range.end && range.end <= code_.end) return true;
    }
    return false;
  }
  /// Reads the entry that next() has found at `fde`.
  Found read(Addr fde, Addr at, Fde& out) noexcept { return read_fde_for(at, view_, context_, fde, out); }
  const AddrRange& code() const noexcept { return code_; }
  const CfiContext& context() const noexcept { return context_; }

 private:
  AddrRange code_;
  Addr begin_;
  CfiContext context_;
  SectionView view_;
  FdeScan scan_;
};

/// The places of the entries while the code is at one place.
struct DumpedFrames::Index {
  AddrRange code{};
  ListIndex entries{};
};

Found DumpedFrames::find(Placed& frames, Addr at, Fde& out) const noexcept try {
  if (!index_ || index_->code != frames.code()) {
    std::vector<ListIndex::Procedure> entries;
    while (frames.next(out)) entries.push_back({out.range, out.address});
    Index made{frames.code(), {}};
    if (!made.entries.make(0, 0, entries)) return Error{ErrorCode::out_of_memory, at, "frames of a jitdump"};
    index_ = std::make_shared<const Index>(std::move(made));
  }
  const Addr fde = index_->entries.find(at);
  return fde == 0 ? Found(false) : frames.read(fde, at, out);
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::out_of_memory, at, "frames of a jitdump"};
}

Found DumpedFrames::find_row(const AddrRange& code, Addr at, const Arch& arch, FrameRow& out) const noexcept {
  Fde fde;
  Placed frames(bytes_, code, arch);
  if (const Found found = find(frames, at, fde); !found || !*found) return found;
  if (const Status row = row_at(fde, frames.context(), at, out); !row) return row.error();
  out.origin = RowOrigin::eh_frame;
  out.keeps_by = KeepsBy::nothing;  // nobody reports when other code replaces it
  return true;
}

Found DumpedFrames::find_procedure(const AddrRange& code, Addr at, const Arch& arch,
                                   ProcedureInfo& out) const noexcept {
  Fde fde;
  Placed frames(bytes_, code, arch);
  if (const Found found = find(frames, at, fde); !found || !*found) return found;
  out = {};
  out.range = fde.range;
  out.origin = RowOrigin::eh_frame;
  return true;
}

std::vector<DumpedFrames::Entry> DumpedFrames::write(const AddrRange& code, const Arch& arch,
                                                     std::vector<std::byte>& into) const {
  std::vector<Entry> entries;
  Fde fde;
  for (Placed frames(bytes_, code, arch); frames.next(fde);)
    if (const auto at = copy_frames(fde, frames.context(), into)) entries.push_back({fde.range, *at});
  return entries;
}

}  // namespace jitunwind

#include "jitunwind/sdk/dialects/frames/frame_copy_p.h"

#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/emit/eh_frame.h"

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

}  // namespace jitunwind

#include "jitunwind/builders/shapes/shape_pool_p.h"

#include <cstring>

#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

struct Pair {
  std::int32_t start;  // relative to start_ip
  std::int32_t fde;    // relative to the table
};
static_assert(sizeof(Pair) == 8);

/// -word, or -1 if a slot is at no multiple of it.
std::int64_t data_alignment(const ShapeContent& content) noexcept {
  for (std::size_t i = 0; i < content.rows.size(); ++i)
    if (!has_slots_of_words(content.rows.row(i), *content.arch)) return -1;
  return -std::int64_t{content.arch->word_size};
}

}  // namespace

Status RowTable::encode(const ShapeContent& content, const Procedure& procedure, EhFrameWriter& writer,
                        std::size_t& fde_at) noexcept {
  const FrameRow first = content.rows.row(0);
  CieParameters cie;
  cie.personality = procedure.personality;
  cie.has_lsda = procedure.lsda != 0;
  cie.signal_frame = first.signal_frame;
  cie.return_address = first.ra;
  cie.data_alignment = content.data_alignment;
  writer.begin_cie(cie);
  fde_at = writer.size();
  writer.begin_fde(procedure.code, procedure.lsda);
  for (std::size_t i = 0; i < content.rows.size(); ++i) {
    const CodeOffset offset = content.rows.offset(i);
    const std::uint64_t at = static_cast<std::uint64_t>(offset) + (offset < 0 ? procedure.code.size() : 0);
    const Status written = writer.row(at, content.rows.row(i));
    if (!written) return Error{written.error().code, i, written.error().what};
  }
  writer.end_fde();
  writer.terminate();
  return Done{};
}

Status RowTable::measure(ShapeContent& content) noexcept {
  content.data_alignment = data_alignment(content);
  // The only distance that depends on the procedure's size is measured in its longest form.
  const std::uint64_t size = content.min_size + (std::uint64_t{1} << 40);
  EhFrameWriter counting(*content.arch, {});
  std::size_t fde_at = 0;
  const Status encoded = encode(content, {{0, size}, 1, 1}, counting, fde_at);
  content.table_bytes = sizeof(Pair) + counting.size();
  if (encoded && counting.size() > k_max_cfi_entry)
    return Error{ErrorCode::too_deep, content.rows.size() - 1, "rows take more than 16 MiB of call frame information"};
  return encoded;
}

std::size_t RowTable::max_bytes(const FrameShape& shape) noexcept { return ShapePool::content(shape).table_bytes; }

Status RowTable::write(const FrameShape& shape, const Procedure& procedure, std::byte* into,
                       unw_dyn_remote_table_info_t& out) noexcept {
  const ShapeContent& content = ShapePool::content(shape);
  EhFrameWriter writer(*content.arch, {into + sizeof(Pair), content.table_bytes - sizeof(Pair)});
  std::size_t fde_at = 0;
  if (const Status encoded = encode(content, procedure, writer, fde_at); !encoded) return encoded;
  if (!writer.fits()) return Error{ErrorCode::too_deep, procedure.code.begin, "call frame information too long"};
  const Pair pair{0, static_cast<std::int32_t>(sizeof(Pair) + fde_at)};
  std::memcpy(into, &pair, sizeof pair);
  out.segbase = reinterpret_cast<std::uintptr_t>(into);
  out.table_len = sizeof(Pair) / content.arch->word_size;  // in words of the CPU
  out.table_data = reinterpret_cast<std::uintptr_t>(into);
  return Done{};
}

}  // namespace jitunwind

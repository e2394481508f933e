#include "jitunwind/unwind_core/emit/row_state.h"

#include <cstring>

#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

Status write_row_state(const FrameRow& row, AddrRange code, const Arch& arch, RowState& out) noexcept {
  EhFrameWriter writer(arch, out.bytes);
  CieParameters parameters;
  parameters.signal_frame = row.signal_frame;
  parameters.signed_with_b_key = row.signing_key == SigningKey::b;
  parameters.return_address = row.ra;
  parameters.data_alignment = -1;
  writer.begin_cie(parameters);
  writer.begin_fde(code, 0);
  if (const Status written = writer.row(0, row); !written) return written.error();
  writer.end_fde();
  if (!writer.fits()) return Error{ErrorCode::row_too_wide, code.begin, "state of registers"};
  out.magic = RowState::k_magic;
  out.size = static_cast<std::uint32_t>(writer.size());
  return Done{};
}

namespace {

Result<Fde> read_entry(std::span<const std::byte> state, Addr begin, const CfiContext& context) noexcept {
  std::array<std::uint32_t, 2> head{};
  if (state.size() < RowState::k_head_size) return Error{ErrorCode::truncated, 0, "state of registers"};
  std::memcpy(head.data(), state.data(), RowState::k_head_size);
  const auto [magic, size] = head;
  if (magic != RowState::k_magic || size > RowState::k_most || size > state.size() - RowState::k_head_size)
    return Error{ErrorCode::unsupported_version, 0, "state of registers"};
  const SectionBytes section{state.subspan(RowState::k_head_size, size), begin + RowState::k_head_size};
  SectionView view(section);
  FdeScan entries(view, context, {section.address, section.address + size});
  Fde fde;
  const Result<bool> found = entries.next(fde);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::bad_structure, 0, "state of registers"};
  return fde;
}

}  // namespace

Status read_row_state(std::span<const std::byte> state, const Arch& arch, FrameRow& out) noexcept {
  const CfiContext context{arch};
  const auto fde = read_entry(state, 0, context);
  return fde ? row_at(*fde, context, fde->range.begin, out) : Status(fde.error());
}

Result<Addr> entry_of_row_state(std::span<const std::byte> state, Addr begin, const Arch& arch) noexcept {
  const auto fde = read_entry(state, begin, CfiContext{arch});
  if (!fde) return fde.error();
  return fde->address;
}

}  // namespace jitunwind

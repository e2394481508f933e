// A section for one procedure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind::test {

/// A row and the code offset from which on it holds.
struct OffsetRow {
  std::uint64_t offset = 0;  ///< bytes from the beginning of the code
  FrameRow row;
};

/// A procedure as its FDE describes it.
struct ProcedureRows {
  AddrRange code{};
  std::span<const OffsetRow> rows{};
  Addr personality = 0;  ///< 0 if there is none
  Addr lsda = 0;         ///< 0 if there is none
};

inline Status write_procedure(EhFrameWriter& writer, const ProcedureRows& procedure,
                              const CieParameters& cie) noexcept {
  writer.begin_cie(cie);
  writer.begin_fde(procedure.code, procedure.lsda);
  for (const OffsetRow& r : procedure.rows) {
    if (const Status written = writer.row(r.offset, r.row); !written) return written;
  }
  writer.end_fde();
  writer.terminate();
  return Done{};
}

/// Returns CIE, FDE and terminator of one procedure. Its signal mark is that of the first row. Errors: those of
/// EhFrameWriter::row.
inline Result<std::vector<std::byte>> emit_eh_frame(const ProcedureRows& procedure, const Arch& arch) {
  if (procedure.rows.empty() || procedure.rows.front().offset != 0)
    return Error{ErrorCode::invalid_argument, 0, "procedure without a row at its beginning"};
  const FrameRow& first = procedure.rows.front().row;
  const bool of_words =
      std::ranges::all_of(procedure.rows, [&](const OffsetRow& r) { return has_slots_of_words(r.row, arch); });
  CieParameters cie;
  cie.personality = procedure.personality;
  cie.has_lsda = procedure.lsda != 0;
  cie.signal_frame = first.signal_frame;
  cie.signed_with_b_key = first.signing_key == SigningKey::b;
  cie.return_address = first.ra;
  cie.data_alignment = of_words ? -std::int64_t{arch.word_size} : -1;

  EhFrameWriter sizing(arch, {});
  if (const Status written = write_procedure(sizing, procedure, cie); !written) return written.error();
  std::vector<std::byte> bytes(sizing.size());
  EhFrameWriter writer(arch, bytes);
  (void)write_procedure(writer, procedure, cie);
  return bytes;
}

}  // namespace jitunwind::test

// A section for one procedure. The function allocates by operator new, so that the core does not have it.
#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind {
namespace {

Status write_procedure(EhFrameWriter& writer, const ProcedureRows& procedure, const CieParameters& cie) noexcept {
  writer.begin_cie(cie);
  writer.begin_fde(procedure.code, procedure.lsda);
  for (const OffsetRow& r : procedure.rows) {
    if (const Status written = writer.row(r.offset, r.row); !written) return written;
  }
  writer.end_fde();
  writer.terminate();
  return Done{};
}

}  // namespace

Result<std::vector<std::byte>> emit_eh_frame(const ProcedureRows& procedure, const Arch& arch) {
  if (procedure.rows.empty() || procedure.rows.front().offset != 0)
    return Error{ErrorCode::invalid_argument, 0, "procedure without a row at its beginning"};
  const FrameRow& first = procedure.rows.front().row;
  CieParameters cie;
  cie.personality = procedure.personality;
  cie.has_lsda = procedure.lsda != 0;
  cie.signal_frame = first.signal_frame;
  cie.signed_with_b_key = first.signing_key == SigningKey::b;
  cie.return_address = first.ra;
  cie.data_alignment = data_alignment_for(procedure.rows, arch);

  EhFrameWriter sizing(arch, {});
  if (const Status written = write_procedure(sizing, procedure, cie); !written) return written.error();
  std::vector<std::byte> bytes(sizing.size());
  EhFrameWriter writer(arch, bytes);
  (void)write_procedure(writer, procedure, cie);
  return bytes;
}

}  // namespace jitunwind

// Rows -> .eh_frame (LSB 5.0 core, 10.6). Pointers are absolute words, so that the bytes work wherever they lie; any
// reader of .eh_frame understands them.
#pragma once

#include <cstdint>
#include <vector>

#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What the FDEs of one CIE share.
struct CieParameters {
  Addr personality = 0;  ///< 0: none
  bool has_lsda = false;
  bool signal_frame = false;
  bool signed_with_b_key = false;    ///< return addresses, where rows say that they are signed
  RegNum return_address = k_no_reg;  ///< k_no_reg: the CPU's
  std::int64_t data_alignment = 0;   ///< slots are counted in it; 0: -word. -1 fits any offset, at the price of length
};

/// One CIE after the other, each with its FDEs, row by row. No allocation; 2 KiB, mostly the row before. After an
/// error, and when fits() is false, the bytes are useless.
class EhFrameWriter {
 public:
  EhFrameWriter(const Arch& arch, std::span<std::byte> into) noexcept;

  /// Begins a CIE, whose instructions follow.
  void begin_cie(const CieParameters& parameters) noexcept;
  /// `lsda` counts only where the CIE has_lsda.
  void begin_fde(AddrRange code, Addr lsda) noexcept;
  /// Rows in ascending order of their offset in the code, in bytes; the first at 0. Only what differs from the row
  /// before is written. Error invalid_argument at `offset`: order; a row without CFA, or with another return address
  /// column or signal mark than the CIE; a slot that data_alignment cannot say; a return address without rule on a CPU
  /// that has one at entry.
  Status row(std::uint64_t offset, const FrameRow& row) noexcept;
  void end_fde() noexcept;
  /// The end of the section.
  void terminate() noexcept;

  std::size_t size() const noexcept { return writer_.size(); }
  bool fits() const noexcept { return writer_.fits(); }

 private:
  void begin_entry() noexcept;
  void end_entry() noexcept;
  const char* move_to(std::uint64_t offset) noexcept;
  const char* change_to(const FrameRow& row) noexcept;
  const char* set_cfa(const CfaRule& from, const CfaRule& to) noexcept;
  const char* set_rule(RegNum reg, const RegRule& from, const RegRule& to) noexcept;
  const char* set_offset_rule(RegNum reg, const RegRule& rule) noexcept;
  bool toggle_sign_state(const RegRule& from, const RegRule& to) noexcept;
  void block(Expression expression) noexcept;
  bool factor(std::int64_t offset, std::int64_t& factored) const noexcept;

  const Arch& arch_;
  ByteWriter writer_;
  CieParameters cie_{};
  FrameRow initial_;  // what the CIE's instructions say
  FrameRow last_;
  AddrRange code_{};
  std::uint64_t location_ = 0;  // offset in the code that the instructions have reached
  std::size_t cie_at_ = 0;
  std::size_t entry_at_ = 0;
};

/// A row, and the offset in the code from which on it holds.
struct OffsetRow {
  std::uint64_t offset = 0;  ///< in bytes from the beginning of the code
  FrameRow row;
};

/// A procedure as its FDE will say it.
struct ProcedureRows {
  AddrRange code{};
  std::span<const OffsetRow> rows{};
  Addr personality = 0;  ///< 0: none
  Addr lsda = 0;         ///< 0: none
};

/// CIE, FDE and terminator of one procedure; its signal mark is that of the first row. Errors as EhFrameWriter::row.
Result<std::vector<std::byte>> emit_eh_frame(const ProcedureRows& procedure, const Arch& arch);

/// The data_alignment for these rows: -word, or -1 where a slot is not word-aligned.
std::int64_t data_alignment_for(std::span<const OffsetRow> rows, const Arch& arch) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

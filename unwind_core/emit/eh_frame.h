// Rows -> .eh_frame (LSB 5.0 core, 10.6), for any reader of .eh_frame. Pointers are absolute words, so that the bytes
// work at any address; or they are relative to their own places, so that the bytes move together with the code.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The parameters that the FDEs of one CIE share.
struct CieParameters {
  Addr personality = 0;  ///< 0 if there is none
  bool has_lsda = false;
  bool signal_frame = false;
  bool signed_with_b_key = false;    ///< for return addresses that rows mark as signed
  RegNum return_address = k_no_reg;  ///< k_no_reg stands for the CPU's
  std::int64_t data_alignment = 0;   ///< unit of slots; 0 stands for -word; -1 fits any offset, at the price of length
};

/// Writes one CIE after the other, each with its FDEs, row by row. The object allocates nothing; it takes 2 KiB, mostly
/// for the previous row. The bytes are useless after an error, or when fits() is false.
class EhFrameWriter {
 public:
  /// `place`: the address at which the bytes will lie, if pointers are to be relative; 0: they are absolute.
  EhFrameWriter(const Arch& arch, std::span<std::byte> into, Addr place = 0) noexcept;

  /// Begins a CIE and writes its instructions.
  void begin_cie(const CieParameters& parameters) noexcept;
  /// `lsda` is used only if the CIE has_lsda.
  void begin_fde(AddrRange code, Addr lsda) noexcept;
  /// Takes the rows in ascending order of their offset in the code, in bytes; the first offset is 0. Only the
  /// differences to the previous row are written. Fails with invalid_argument at `offset` when rows are out of order.
  /// Other reasons are a row without CFA, or with another return address column or signal mark than the CIE; a slot
  /// that data_alignment cannot express; and a return address without a rule on a CPU that has a rule at entry.
  Status row(std::uint64_t offset, const FrameRow& row) noexcept;
  void end_fde() noexcept;
  /// Ends the section.
  void terminate() noexcept;

  std::size_t size() const noexcept { return writer_.size(); }
  bool fits() const noexcept { return writer_.fits(); }

 private:
  void begin_entry() noexcept;
  void end_entry() noexcept;
  void pointer(Addr value) noexcept;
  const char* move_to(std::uint64_t offset) noexcept;
  const char* change_to(const FrameRow& row) noexcept;
  const char* set_cfa(const CfaRule& from, const CfaRule& to) noexcept;
  const char* set_rule(RegNum reg, const RegRule& from, const RegRule& to) noexcept;
  const char* set_offset_rule(RegNum reg, const RegRule& rule) noexcept;
  bool toggle_sign_state(const RegRule& from, const RegRule& to) noexcept;
  void block(Expression expression) noexcept;
  bool factor(std::int64_t offset, std::int64_t& factored) const noexcept;

  const Arch& arch_;
  const Addr place_;
  ByteWriter writer_;
  CieParameters cie_{};
  FrameRow initial_;  // the row that the CIE's instructions establish
  FrameRow last_;
  AddrRange code_{};
  std::uint64_t location_ = 0;  // the code offset that the instructions have reached
  std::size_t cie_at_ = 0;
  std::size_t entry_at_ = 0;
};

/// Whether all slots of the row are at multiples of a word from the CFA. Else only a data_alignment of -1 is right.
bool has_slots_of_words(const FrameRow& row, const Arch& arch) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop

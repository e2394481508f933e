#include "jitunwind/unwind_core/emit/eh_frame.h"

#include <array>

#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

using namespace dwarf;

/// An expression of a few operations, on the stack.
class SmallExpression {
 public:
  explicit SmallExpression(bool big_endian) noexcept : writer_(bytes_, big_endian) {}
  SmallExpression(const SmallExpression&) = delete;
  SmallExpression& operator=(const SmallExpression&) = delete;

  void breg(RegNum reg, std::int64_t offset) noexcept {
    if (reg < 32) {
      writer_.u8(op_breg0 + reg);
    } else {
      writer_.u8(op_bregx);
      writer_.uleb(reg);
    }
    writer_.sleb(offset);
  }
  void constant(std::int64_t value) noexcept {
    if (value >= 0 && value < 32) return writer_.u8(op_lit0 + static_cast<std::uint64_t>(value));
    writer_.u8(op_consts);
    writer_.sleb(value);
  }
  void deref() noexcept { writer_.u8(op_deref); }
  void plus(std::int64_t value) noexcept {
    if (value == 0) return;
    if (value > 0) {
      writer_.u8(op_plus_uconst);
      return writer_.uleb(static_cast<std::uint64_t>(value));
    }
    constant(value);
    writer_.u8(op_plus);
  }
  Expression bytes() const noexcept { return Expression(bytes_).first(writer_.size()); }

 private:
  std::array<std::byte, 32> bytes_;  // bregx 3, offset 10, deref, constant 11, plus
  ByteWriter writer_;
};

bool is_sign_state(const RegRule& rule) noexcept {
  return rule.kind == RegRule::Kind::unspecified ||
         (rule.kind == RegRule::Kind::constant && rule.offset >= 0 && rule.offset <= 3);
}

}  // namespace

EhFrameWriter::EhFrameWriter(const Arch& arch, std::span<std::byte> into, Addr place) noexcept
    : arch_(arch), place_(place), writer_(into, arch.big_endian) {}

/// end_entry() writes the length.
void EhFrameWriter::begin_entry() noexcept {
  entry_at_ = writer_.size();
  writer_.u32(0);
}

/// Entries are padded to whole words (LSB 5.0 core, 10.6.1.1).
void EhFrameWriter::end_entry() noexcept {
  writer_.pad(arch_.word_size, cfa_nop);
  writer_.patch_u32(entry_at_, writer_.size() - entry_at_ - 4);
}

/// A relative pointer of 0 is null, too (LSB 5.0 core, 10.5.1).
void EhFrameWriter::pointer(Addr value) noexcept {
  if (place_ != 0 && value != 0) value -= place_ + writer_.size();
  writer_.unsigned_of(value, arch_.word_size);
}

void EhFrameWriter::begin_cie(const CieParameters& parameters) noexcept {
  cie_ = parameters;
  if (cie_.return_address == k_no_reg) cie_.return_address = arch_.ra;
  if (cie_.data_alignment == 0) cie_.data_alignment = -std::int64_t{arch_.word_size};

  begin_entry();
  cie_at_ = entry_at_;
  writer_.u32(0);  // CIE id
  // Version 1 has one byte for the return address column. libgcc also knows version 3.
  const bool narrow = cie_.return_address <= 0xff;
  writer_.u8(narrow ? 1 : 3);
  writer_.u8('z');
  if (cie_.personality != 0) writer_.u8('P');
  if (cie_.has_lsda) writer_.u8('L');
  writer_.u8('R');
  if (cie_.signal_frame) writer_.u8('S');
  if (cie_.signed_with_b_key) writer_.u8('B');
  writer_.u8(0);
  writer_.uleb(arch_.unit);
  writer_.sleb(cie_.data_alignment);
  if (narrow)
    writer_.u8(cie_.return_address);
  else
    writer_.uleb(cie_.return_address);
  writer_.uleb((cie_.personality != 0 ? 1u + arch_.word_size : 0u) + (cie_.has_lsda ? 1u : 0u) + 1u);
  const unsigned encoding = place_ != 0 ? pe_pcrel | pe_absptr : pe_absptr;
  if (cie_.personality != 0) {
    writer_.u8(encoding);
    pointer(cie_.personality);
  }
  if (cie_.has_lsda) writer_.u8(encoding);
  writer_.u8(encoding);

  // Most procedures begin with the CPU's entry row, so the CIE's instructions establish it.
  last_ = {};
  last_.ra = cie_.return_address;
  last_.signal_frame = cie_.signal_frame;
  initial_ = last_;
  FrameRow entry = entry_row(arch_);
  if (entry.ra != cie_.return_address) entry.clear_rules();
  entry.ra = cie_.return_address;
  entry.signal_frame = cie_.signal_frame;
  (void)change_to(entry);
  initial_ = entry;
  end_entry();
}

void EhFrameWriter::begin_fde(AddrRange code, Addr lsda) noexcept {
  begin_entry();
  writer_.u32(writer_.size() - cie_at_);  // distance to the CIE
  pointer(code.begin);
  writer_.unsigned_of(code.size(), arch_.word_size);
  writer_.uleb(cie_.has_lsda ? arch_.word_size : 0u);
  if (cie_.has_lsda) pointer(lsda);
  code_ = code;
  location_ = 0;
  last_ = initial_;
}

Status EhFrameWriter::row(std::uint64_t offset, const FrameRow& row) noexcept {
  const RegNum ra = row.ra == k_no_reg ? arch_.ra : row.ra;
  const char* wrong = nullptr;
  if (ra != cie_.return_address || row.signal_frame != cie_.signal_frame) {
    wrong = "row and CIE differ in the return address column or the signal mark";
  } else if (!(row == last_)) {
    wrong = move_to(offset);
    if (!wrong) wrong = change_to(row);
  }
  if (wrong) return Error{ErrorCode::invalid_argument, offset, wrong};
  return Done{};
}

void EhFrameWriter::end_fde() noexcept { end_entry(); }

void EhFrameWriter::terminate() noexcept { writer_.u32(0); }

const char* EhFrameWriter::move_to(std::uint64_t offset) noexcept {
  if (offset < location_ || offset >= code_.size()) return "rows are not in ascending order within the code";
  const std::uint64_t bytes = offset - location_;
  if (bytes % arch_.unit != 0) return "row in the middle of an instruction";
  const std::uint64_t units = bytes / arch_.unit;
  location_ = offset;
  if (units == 0) return nullptr;
  if (units < 0x40) {
    writer_.u8(cfa_advance_loc | units);
  } else if (units <= 0xff) {
    writer_.u8(cfa_advance_loc1);
    writer_.u8(units);
  } else if (units <= 0xffff) {
    writer_.u8(cfa_advance_loc2);
    writer_.u16(units);
  } else if (units <= 0xffffffffu) {
    writer_.u8(cfa_advance_loc4);
    writer_.u32(units);
  } else {
    writer_.u8(cfa_set_loc);
    pointer(code_.begin + offset);
  }
  return nullptr;
}

/// Merges the two sorted lists of rules and writes their differences.
const char* EhFrameWriter::change_to(const FrameRow& row) noexcept {
  if (!(row.cfa == last_.cfa)) {
    if (const char* wrong = set_cfa(last_.cfa, row.cfa)) return wrong;
  }
  const auto olds = last_.entries();
  const auto news = row.entries();
  std::size_t o = 0, n = 0;
  while (o < olds.size() || n < news.size()) {
    const bool has_old = o < olds.size() && (n == news.size() || olds[o].reg <= news[n].reg);
    const bool has_new = n < news.size() && (o == olds.size() || news[n].reg <= olds[o].reg);
    const RegNum reg = has_old ? olds[o].reg : news[n].reg;
    const RegRule from = has_old ? olds[o].rule : RegRule{};
    const RegRule to = has_new ? news[n].rule : RegRule{};
    if (!(from == to)) {
      if (const char* wrong = set_rule(reg, from, to)) return wrong;
    }
    o += has_old;
    n += has_new;
  }
  if (row.args_size != last_.args_size) {
    writer_.u8(cfa_gnu_args_size);
    writer_.uleb(row.args_size);
  }
  last_ = row;
  return nullptr;
}

const char* EhFrameWriter::set_cfa(const CfaRule& from, const CfaRule& to) noexcept {
  using Kind = CfaRule::Kind;
  if (to.kind == Kind::none) return "row without CFA";
  if (to.kind != Kind::offset) {
    SmallExpression deref(arch_.big_endian);
    if (to.kind == Kind::deref) {
      deref.breg(to.reg, to.offset);
      deref.deref();
      deref.plus(to.add);
    }
    writer_.u8(cfa_def_cfa_expression);
    block(to.kind == Kind::deref ? deref.bytes() : to.expression);
    return nullptr;
  }
  const bool reg_stays = from.kind == Kind::offset && from.reg == to.reg;
  if (from.kind == Kind::offset && from.offset == to.offset) {
    writer_.u8(cfa_def_cfa_register);
    writer_.uleb(to.reg);
    return nullptr;
  }
  std::int64_t factored = 0;
  if (to.offset < 0 && !factor(to.offset, factored)) return "offset of the CFA is no multiple of the data alignment";
  writer_.u8(to.offset < 0 ? (reg_stays ? cfa_def_cfa_offset_sf : cfa_def_cfa_sf)
                           : (reg_stays ? cfa_def_cfa_offset : cfa_def_cfa));
  if (!reg_stays) writer_.uleb(to.reg);
  if (to.offset < 0)
    writer_.sleb(factored);
  else
    writer_.uleb(static_cast<std::uint64_t>(to.offset));
  return nullptr;
}

const char* EhFrameWriter::set_rule(RegNum reg, const RegRule& from, const RegRule& to) noexcept {
  using Kind = RegRule::Kind;
  if (reg == arch_.sign_state && toggle_sign_state(from, to)) return nullptr;
  const RegRule initial = initial_.rule(reg);
  if (to == initial) {
    if (reg < 0x40) return writer_.u8(cfa_restore | reg), nullptr;
    writer_.u8(cfa_restore_extended);
    return writer_.uleb(reg), nullptr;
  }
  SmallExpression made(arch_.big_endian);
  switch (to.kind) {
    case Kind::unspecified:
      return "the return address has no rule";
    case Kind::at_cfa:
    case Kind::is_cfa:
      return set_offset_rule(reg, to);
    case Kind::undefined:
    case Kind::same:
      writer_.u8(to.kind == Kind::same ? cfa_same_value : cfa_undefined);
      return writer_.uleb(reg), nullptr;
    case Kind::in_reg:
      writer_.u8(cfa_register);
      writer_.uleb(reg);
      return writer_.uleb(to.reg), nullptr;
    case Kind::at_reg:
    case Kind::is_reg:
      made.breg(to.reg, to.offset);
      break;
    case Kind::constant:
      made.constant(to.offset);
      break;
    case Kind::at_expression:
    case Kind::is_expression:
      break;
  }
  const bool loads = to.kind == Kind::at_reg || to.kind == Kind::at_expression;
  writer_.u8(loads ? cfa_expression : cfa_val_expression);
  writer_.uleb(reg);
  block(to.has_expression() ? to.expression() : made.bytes());
  return nullptr;
}

const char* EhFrameWriter::set_offset_rule(RegNum reg, const RegRule& rule) noexcept {
  std::int64_t factored = 0;
  if (!factor(rule.offset, factored)) return "slot is no multiple of the data alignment";
  const bool at = rule.kind == RegRule::Kind::at_cfa;
  if (at && factored >= 0 && reg < 0x40) {
    writer_.u8(cfa_offset | reg);
  } else {
    writer_.u8(at ? (factored < 0 ? cfa_offset_extended_sf : cfa_offset_extended)
                  : (factored < 0 ? cfa_val_offset_sf : cfa_val_offset));
    writer_.uleb(reg);
  }
  if (factored < 0)
    writer_.sleb(factored);
  else
    writer_.uleb(static_cast<std::uint64_t>(factored));
  return nullptr;
}

/// Writes the toggles that lead from one signing state to another (DWARF for the Arm 64-bit Architecture, 4.4). State 0
/// is "unspecified".
bool EhFrameWriter::toggle_sign_state(const RegRule& from, const RegRule& to) noexcept {
  if (!is_sign_state(from) || !is_sign_state(to)) return false;
  const std::int64_t changed = from.offset ^ to.offset;
  if ((changed & 2) != 0) writer_.u8(cfa_aarch64_negate_ra_state_with_pc);
  if (changed == 1 || changed == 2) writer_.u8(cfa_gnu_window_save);
  return true;
}

void EhFrameWriter::block(Expression expression) noexcept {
  writer_.uleb(expression.size());
  writer_.bytes(expression);
}

bool EhFrameWriter::factor(std::int64_t offset, std::int64_t& factored) const noexcept {
  // Only -1 can overflow, and only for the smallest number.
  if (cie_.data_alignment == -1) {
    factored = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(offset));
    return true;
  }
  factored = offset / cie_.data_alignment;
  return offset % cie_.data_alignment == 0;
}

bool has_slots_of_words(const FrameRow& row, const Arch& arch) noexcept {
  const auto is_aligned = [&](std::int64_t offset) { return offset % arch.word_size == 0; };
  if (row.cfa.kind == CfaRule::Kind::offset && row.cfa.offset < 0 && !is_aligned(row.cfa.offset)) return false;
  for (const FrameRow::Entry& e : row.entries()) {
    const bool is_slot = e.rule.kind == RegRule::Kind::at_cfa || e.rule.kind == RegRule::Kind::is_cfa;
    if (is_slot && !is_aligned(e.rule.offset)) return false;
  }
  return true;
}

}  // namespace jitunwind

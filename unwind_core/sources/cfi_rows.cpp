// Call frame instructions (DWARF 5, 6.4.2) -> rows.
#include <algorithm>
#include <limits>

#include "unwind_core/dwarf_constants_p.h"
#include "unwind_core/dwarf_literal_p.h"
#include "unwind_core/sources/cfi.h"

namespace jitunwind {
namespace {

using namespace dwarf;

/// DW_OP_breg0..31 or DW_OP_bregx at the reader's place: reg + offset.
struct RegPlus {
  RegNum reg;
  std::int64_t offset;
};

std::optional<RegPlus> read_breg(ByteReader& reader) noexcept {
  const std::uint8_t op = reader.u8();
  const bool breg = op >= op_breg0 && op <= op_breg31;
  if (!breg && op != op_bregx) return std::nullopt;
  const std::uint64_t reg = breg ? std::uint64_t{op} - op_breg0 : reader.uleb();
  const std::int64_t offset = reader.sleb();
  if (!reader.ok() || reg >= k_no_reg) return std::nullopt;
  return RegPlus{static_cast<RegNum>(reg), offset};
}

/// Up to the end: nothing, DW_OP_plus_uconst k, or a constant k and DW_OP_plus.
std::optional<std::int64_t> read_addend(ByteReader& reader) noexcept {
  if (reader.at_end()) return 0;
  const std::uint8_t op = reader.u8();
  std::optional<std::uint64_t> value;
  if (op == op_plus_uconst) {
    value = reader.uleb();
  } else if ((value = read_literal(op, reader)) && reader.u8() != op_plus) {
    return std::nullopt;
  }
  if (!value || !reader.ok() || !reader.at_end()) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// breg r, off; deref [; + k] is *(r + off) + k, the frame of a realigned stack.
CfaRule cfa_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  if (const auto base = read_breg(reader); base && reader.u8() == op_deref && reader.ok()) {
    if (const auto add = read_addend(reader)) return CfaRule::deref(base->reg, base->offset, *add);
  }
  return CfaRule::of(expression);
}

RegRule load_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  const auto base = read_breg(reader);
  return base && reader.at_end() ? RegRule::at_reg(base->reg, base->offset) : RegRule::at(expression);
}

RegRule value_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  const auto base = read_breg(reader);
  if (base && reader.at_end()) return RegRule::is_reg(base->reg, base->offset);
  ByteReader again(expression, big_endian);
  const auto value = read_literal(again.u8(), again);
  if (value && again.ok() && again.at_end()) return RegRule::constant(static_cast<std::int64_t>(*value));
  return RegRule::is(expression);
}

}  // namespace

// SavedStates

bool FdeRows::SavedStates::push(const FrameRow& row, std::int64_t plain_offset) noexcept {
  const auto rules = row.entries();
  const Head head{row.cfa, plain_offset, top_, rules.size()};
  if (sizeof head + rules.size_bytes() > sizeof storage_ - end_) return false;
  top_ = end_;
  std::memcpy(storage_ + end_, &head, sizeof head);
  end_ += sizeof head;
  if (!rules.empty()) std::memcpy(storage_ + end_, rules.data(), rules.size_bytes());
  end_ += rules.size_bytes();
  return true;
}

bool FdeRows::SavedStates::pop(FrameRow& row, std::int64_t& plain_offset) noexcept {
  if (top_ == 0) return false;
  Head head;
  std::memcpy(&head, storage_ + top_, sizeof head);
  row.cfa = head.cfa;
  plain_offset = head.plain_offset;
  row.clear_rules();
  for (std::size_t i = 0; i < head.count; ++i) {
    FrameRow::Entry entry;
    std::memcpy(&entry, storage_ + top_ + sizeof head + i * sizeof entry, sizeof entry);
    (void)row.set(entry.reg, entry.rule);  // they fitted before
  }
  end_ = top_;
  top_ = head.previous;
  return true;
}

RegRule FdeRows::SavedStates::initial_rule(RegNum reg) const noexcept {
  if (empty()) return {};
  Head head;
  std::memcpy(&head, storage_, sizeof head);
  for (std::size_t i = 0; i < head.count; ++i) {
    FrameRow::Entry entry;
    std::memcpy(&entry, storage_ + sizeof head + i * sizeof entry, sizeof entry);
    if (entry.reg == reg) return entry.rule;
  }
  return {};
}

// FdeRows

FdeRows::FdeRows(const Fde& fde, const CfiContext& context, FrameRow& row) noexcept
    : fde_(fde),
      context_(context),
      row_(row),
      program_(fde.cie.instructions.bytes, context.arch.big_endian, fde.cie.instructions.address),
      next_begin_(fde.range.begin) {}

/// The initial instructions of the CIE; they belong to no location.
Status FdeRows::start() noexcept {
  started_ = true;
  row_.cfa = {};
  row_.clear_rules();
  row_.args_size = 0;
  row_.ra = fde_.cie.return_address;
  row_.signal_frame = fde_.cie.signal_frame;
  while (!failed_ && !program_.at_end()) {
    if (execute()) fail(ErrorCode::bad_structure, "initial instructions of a CIE move the location");
  }
  if (!failed_ && !saved_.push(row_, plain_offset_)) fail(ErrorCode::too_deep, "initial state of a CIE");
  program_ = ByteReader(fde_.instructions.bytes, context_.arch.big_endian, fde_.instructions.address);
  if (failed_) return error_;
  return Done{};
}

Result<bool> FdeRows::next() noexcept {
  if (!started_) {
    if (const Status begun = start(); !begun) return begun.error();
  }
  if (failed_) return error_;
  if (next_begin_ >= fde_.range.end) return false;
  row_.range = {next_begin_, fde_.range.end};
  while (!program_.at_end()) {
    const bool moved = execute();
    if (failed_) return error_;
    if (!moved) continue;
    row_.range.end = std::min(next_begin_, fde_.range.end);
    return true;
  }
  next_begin_ = fde_.range.end;
  return true;
}

void FdeRows::fail(ErrorCode code, const char* what) noexcept {
  if (failed_) return;
  failed_ = true;
  error_ = {code, instruction_at_, what};
}

bool FdeRows::execute() noexcept {
  instruction_at_ = program_.address();
  const std::uint8_t op = program_.u8();
  const std::uint8_t operand = op & 0x3fu;
  bool moved = false;
  switch (op & 0xc0u) {
    case cfa_advance_loc:
      moved = advance(operand);
      break;
    case cfa_offset:
      set(operand, RegRule::at_cfa(factored(program_.uleb())));
      break;
    case cfa_restore:
      set(operand, saved_.initial_rule(operand));
      break;
    default:
      moved = execute_extended(op);
      break;
  }
  if (!program_.ok()) fail(program_.error("").code, "operand of a call frame instruction");
  return moved && !failed_;
}

bool FdeRows::execute_extended(std::uint8_t op) noexcept {
  switch (op) {
    case cfa_nop:
      return false;
    case cfa_set_loc:
      return set_location();
    case cfa_advance_loc1:
      return advance(program_.u8());
    case cfa_advance_loc2:
      return advance(program_.u16());
    case cfa_advance_loc4:
      return advance(program_.u32());
    case cfa_mips_advance_loc8:
      return advance(program_.u64());
    case cfa_def_cfa:
    case cfa_def_cfa_sf:
    case cfa_def_cfa_register:
    case cfa_def_cfa_offset:
    case cfa_def_cfa_offset_sf:
    case cfa_def_cfa_expression:
      define_cfa(op);
      return false;
    case cfa_remember_state:
      if (saved_.empty()) fail(ErrorCode::bad_structure, "initial instructions of a CIE remember a state");
      if (!saved_.push(row_, plain_offset_)) fail(ErrorCode::too_deep, "too many remembered states");
      return false;
    case cfa_restore_state:
      // The rules and the CFA: DWARF 5, 6.4.2.4 speaks of the former only, producers mean both.
      if (!saved_.pop(row_, plain_offset_)) fail(ErrorCode::bad_structure, "no remembered state to restore");
      return false;
    case cfa_aarch64_negate_ra_state_with_pc:
      toggle_sign_state(3);
      return false;
    case cfa_gnu_window_save:
      toggle_sign_state(1);
      return false;
    case cfa_gnu_args_size: {
      const std::uint64_t size = program_.uleb();
      row_.args_size = static_cast<std::uint32_t>(size);
      if (row_.args_size != size) fail(ErrorCode::bad_structure, "size of pushed arguments");
      return false;
    }
    default:
      set_rule(op);
      return false;
  }
}

bool FdeRows::advance(std::uint64_t units) noexcept {
  const std::uint64_t unit = fde_.cie.code_alignment;
  const Addr from = next_begin_;
  if (unit != 0 && units > (std::numeric_limits<Addr>::max() - from) / unit) {
    fail(ErrorCode::bad_structure, "location behind the end of the address space");
    return false;
  }
  next_begin_ = from + units * unit;
  return next_begin_ != from;
}

bool FdeRows::set_location() noexcept {
  const Addr from = next_begin_;
  const EncodedPointer to = read_encoded(program_, fde_.cie.pointer_encoding, context_, fde_.range.begin);
  if (!program_.ok()) return false;
  if (to.indirect || to.value < from) {
    fail(ErrorCode::bad_structure, "DW_CFA_set_loc does not move forward");
    return false;
  }
  next_begin_ = to.value;
  return next_begin_ != from;
}

/// The instructions that set one half of a CFA need the other (DWARF 5, 6.4.2.2). A register behind an expression takes
/// the offset from before it, as in libgcc: hand-written code of libgcrypt.so.20 of Debian 12 realigns its stack, says
/// the CFA as an expression, and goes back to rsp so. An offset behind an expression is refused.
void FdeRows::define_cfa(std::uint8_t op) noexcept {
  CfaRule& cfa = row_.cfa;
  if (op == cfa_def_cfa_expression) {
    cfa = cfa_rule(block(), context_.arch.big_endian);
    return;
  }
  if (op == cfa_def_cfa || op == cfa_def_cfa_sf || op == cfa_def_cfa_register) {
    if (op == cfa_def_cfa_register && cfa.kind == CfaRule::Kind::none)
      return fail(ErrorCode::bad_structure, "register of a CFA that was never defined");
    cfa = CfaRule::at(read_reg(), plain_offset_);
  } else if (cfa.kind != CfaRule::Kind::offset) {
    return fail(ErrorCode::bad_structure, "offset of a CFA that is not register and offset");
  }
  if (op == cfa_def_cfa_sf || op == cfa_def_cfa_offset_sf)
    cfa.offset = factored(static_cast<std::uint64_t>(program_.sleb()));
  else if (op != cfa_def_cfa_register)
    cfa.offset = static_cast<std::int64_t>(program_.uleb());
  plain_offset_ = cfa.offset;
}

void FdeRows::set_rule(std::uint8_t op) noexcept {
  const bool big_endian = context_.arch.big_endian;
  const auto is_rule = [](std::uint8_t o) {
    return (o >= cfa_offset_extended && o <= cfa_register) || o == cfa_expression || o == cfa_offset_extended_sf ||
           (o >= cfa_val_offset && o <= cfa_val_expression) || o == cfa_gnu_negative_offset_extended;
  };
  if (!is_rule(op)) return fail(ErrorCode::bad_opcode, "unknown call frame instruction");
  const RegNum reg = read_reg();
  const auto signed_operand = [this] { return static_cast<std::uint64_t>(program_.sleb()); };
  switch (op) {
    case cfa_offset_extended:
      return set(reg, RegRule::at_cfa(factored(program_.uleb())));
    case cfa_offset_extended_sf:
      return set(reg, RegRule::at_cfa(factored(signed_operand())));
    case cfa_gnu_negative_offset_extended:  // obsolete: offset counted the other way
      return set(reg, RegRule::at_cfa(factored(0 - program_.uleb())));
    case cfa_val_offset:
      return set(reg, RegRule::is_cfa(factored(program_.uleb())));
    case cfa_val_offset_sf:
      return set(reg, RegRule::is_cfa(factored(signed_operand())));
    case cfa_restore_extended:
      return set(reg, saved_.initial_rule(reg));
    case cfa_undefined:
      return set(reg, RegRule::undefined());
    case cfa_same_value:
      return set(reg, RegRule::same());
    case cfa_register:
      return set(reg, RegRule::in_reg(read_reg()));
    case cfa_expression:
      return set(reg, load_rule(block(), big_endian));
    default:
      return set(reg, value_rule(block(), big_endian));
  }
}

/// DWARF for the Arm 64-bit Architecture, 4.4: RA_SIGN_STATE starts as 0, bit 0 says signed, bit 1 with the pc. State 0
/// is left out of the row, so that rows before and behind a signed stretch are equal.
void FdeRows::toggle_sign_state(std::int64_t bits) noexcept {
  const RegNum reg = context_.arch.sign_state;
  if (reg == k_no_reg) return fail(ErrorCode::bad_opcode, "return addresses are not signed on this CPU");
  const RegRule old = row_.rule(reg);
  if (old.kind != RegRule::Kind::unspecified && old.kind != RegRule::Kind::constant)
    return fail(ErrorCode::bad_structure, "signing state that is not known is toggled");
  set(reg, RegRule::constant(old.offset ^ bits));
}

void FdeRows::set(RegNum reg, RegRule rule) noexcept {
  if (failed_ || !program_.ok()) return;
  if (reg == context_.arch.sign_state && rule == RegRule::constant(0)) rule = {};
  if (!row_.set(reg, rule)) fail(ErrorCode::row_too_wide, "more rules than a row holds");
}

RegNum FdeRows::read_reg() noexcept {
  const std::uint64_t number = program_.uleb();
  if (number < k_no_reg) return static_cast<RegNum>(number);
  fail(ErrorCode::bad_register, "register number of a call frame instruction");
  return k_no_reg;
}

Expression FdeRows::block() noexcept {
  const std::uint64_t size = program_.uleb();
  return program_.bytes(size);
}

/// operand * data_alignment_factor, modulo 2^64.
std::int64_t FdeRows::factored(std::uint64_t operand) const noexcept {
  return static_cast<std::int64_t>(operand * static_cast<std::uint64_t>(fde_.cie.data_alignment));
}

Status row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept {
  FdeRows rows(fde, context, out);
  for (;;) {
    const Result<bool> more = rows.next();
    if (!more) return more.error();
    if (!*more) return Error{ErrorCode::no_info, at, "address outside of the FDE"};
    if (out.range.contains(at)) return Done{};
  }
}

Status own_row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept {
  if (const Status row = row_at(fde, context, at, out); !row) return row;
  if (!out.own_expressions()) return Error{ErrorCode::row_too_wide, fde.address, "expressions of a row"};
  return Done{};
}

}  // namespace jitunwind

// Call frame instructions (DWARF 5, 6.4.2) -> rows.
#include <algorithm>
#include <array>

#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

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
[[gnu::cold, gnu::noinline]] CfaRule cfa_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  if (const auto base = read_breg(reader); base && reader.u8() == op_deref && reader.ok()) {
    if (const auto add = read_addend(reader)) return CfaRule::deref(base->reg, base->offset, *add);
  }
  return CfaRule::of(expression);
}

[[gnu::cold, gnu::noinline]] RegRule load_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  const auto base = read_breg(reader);
  return base && reader.at_end() ? RegRule::at_reg(base->reg, base->offset) : RegRule::at(expression);
}

[[gnu::cold, gnu::noinline]] RegRule value_rule(Expression expression, bool big_endian) noexcept {
  ByteReader reader(expression, big_endian);
  const auto base = read_breg(reader);
  if (base && reader.at_end()) return RegRule::is_reg(base->reg, base->offset);
  ByteReader again(expression, big_endian);
  const auto value = read_literal(again.u8(), again);
  if (value && again.ok() && again.at_end()) return RegRule::constant(static_cast<std::int64_t>(*value));
  return RegRule::is(expression);
}

}  // namespace

bool CfiProgram::SavedStates::push(const FrameRow& row, std::int64_t plain_offset) noexcept {
  const auto rules = row.entries();
  const Head head{row.cfa, plain_offset, top_, rules.size()};
  if (sizeof head + rules.size_bytes() > storage_.size() - end_) return false;
  top_ = end_;
  std::memcpy(storage_.data() + end_, &head, sizeof head);
  end_ += sizeof head;
  if (!rules.empty()) std::memcpy(storage_.data() + end_, rules.data(), rules.size_bytes());
  end_ += rules.size_bytes();
  return true;
}

bool CfiProgram::SavedStates::set_initial(const FrameRow& row, std::int64_t plain_offset) noexcept {
  if (!push(row, plain_offset)) return false;
  top_ = k_none;
  initial_ = storage_.first(end_);
  return true;
}

CfiProgram::SavedStates::Head CfiProgram::SavedStates::load(const std::byte* state, FrameRow& row,
                                                            std::int64_t& plain_offset) noexcept {
  Head head;
  std::memcpy(&head, state, sizeof head);
  row.cfa = head.cfa;
  plain_offset = head.plain_offset;
  row.set_rules(state + sizeof head, head.count);  // they fitted before
  return head;
}

bool CfiProgram::SavedStates::pop(FrameRow& row, std::int64_t& plain_offset) noexcept {
  if (top_ == k_none) return false;
  const Head head = load(storage_.data() + top_, row, plain_offset);
  end_ = top_;
  top_ = head.previous;
  return true;
}

inline RegRule CfiProgram::SavedStates::initial_rule(RegNum reg) const noexcept {
  if (initial_.empty()) return {};
  Head head;
  std::memcpy(&head, initial_.data(), sizeof head);
  for (std::size_t i = 0; i < head.count; ++i) {
    FrameRow::Entry entry;
    std::memcpy(&entry, initial_.data() + sizeof head + i * sizeof entry, sizeof entry);
    if (entry.reg == reg) return entry.rule;
  }
  return {};
}

// Functions that nearly every instruction needs are inline.

/// operand * data_alignment_factor, modulo 2^64.
[[gnu::always_inline]] inline std::int64_t CfiProgram::factored(std::uint64_t operand) const noexcept {
  return static_cast<std::int64_t>(operand * static_cast<std::uint64_t>(cie_.data_alignment));
}

[[gnu::always_inline]] inline bool CfiProgram::advance(std::uint64_t units) noexcept {
  const Addr from = next_begin_;
  std::uint64_t distance = 0;
  if (__builtin_mul_overflow(units, cie_.code_alignment, &distance) ||
      __builtin_add_overflow(from, distance, &next_begin_)) {
    next_begin_ = from;
    fail(ErrorCode::bad_structure, "location behind the end of the address space");
    return false;
  }
  return distance != 0;
}

[[gnu::always_inline]] inline void CfiProgram::set_cfa_offset(std::int64_t offset) noexcept {
  if (row_.cfa.kind != CfaRule::Kind::offset)
    return fail(ErrorCode::bad_structure, "offset of a CFA that is not register and offset");
  row_.cfa.offset = plain_offset_ = offset;
}

[[gnu::always_inline]] inline void CfiProgram::set(RegNum reg, const RegRule& rule) noexcept {
  const bool is_unsigned = reg == context_.arch.sign_state && rule == RegRule::constant(0);
  if (!(is_unsigned ? row_.set(reg, RegRule()) : row_.set(reg, rule)))
    fail(ErrorCode::row_too_wide, "more rules than a row holds");
}

[[gnu::always_inline]] inline void CfiProgram::start() noexcept {
  started_ = true;
  row_.args_size = 0;
  row_.ra = cie_.return_address;
  row_.signal_frame = cie_.signal_frame;
  row_.signing_key = cie_.signed_with_b_key ? SigningKey::b : SigningKey::a;
  run_initial_instructions();
  if (!failed_) program_ = ByteReader(instructions_.bytes, context_.arch.big_endian, instructions_.address);
}

/// Runs the instructions of the CIE, which belong to no location.
void CfiProgram::run_initial_instructions() noexcept {
  row_.cfa = {};
  row_.clear_rules();
  while (!program_.at_end()) {
    if (execute()) fail(ErrorCode::bad_structure, "initial instructions of a CIE move the location");
  }
  if (has_failed()) return;
  if (!saved_.set_initial(row_, plain_offset_)) fail(ErrorCode::too_deep, "initial state of a CIE");
}

bool CfiProgram::run_behind(Addr at) noexcept {
  if (!started_) start();
  if (failed_) return false;
  if (next_begin_ >= range_.end) return false;
  Addr begin = next_begin_;
  const Addr end = range_.end;
  while (!program_.at_end()) {
    if (!execute()) continue;
    if (next_begin_ > at || next_begin_ >= end) {
      row_.range = {begin, std::min(next_begin_, end)};
      return true;
    }
    begin = next_begin_;
  }
  if (has_failed()) return false;
  next_begin_ = end;
  row_.range = {begin, end};
  return true;
}

void CfiProgram::fail(ErrorCode code, const char* what) noexcept {
  if (failed_) return;
  failed_ = true;
  error_ = {code, instruction_at_, what};
  program_.fail(code);
}

/// Ends a program.
bool CfiProgram::has_failed() noexcept {
  if (!program_.ok()) fail(program_.error("").code, "operand of a call frame instruction");
  return failed_;
}

/// Instructions that compilers use for all functions are here, all others in execute_extended().
[[gnu::always_inline]] inline bool CfiProgram::execute() noexcept {
  instruction_at_ = program_.address();
  const std::uint8_t op = program_.u8();
  const std::uint8_t operand = op & 0x3fu;
  switch (op & 0xc0u) {
    case cfa_advance_loc:
      return advance(operand);
    case cfa_offset:
      set(operand, RegRule::at_cfa(read_factored_offset()));
      return false;
    case cfa_restore:
      set(operand, saved_.initial_rule(operand));
      return false;
    default:
      if (op != cfa_def_cfa_offset) return execute_extended(op);
      set_cfa_offset(read_offset());
      return false;
  }
}

bool CfiProgram::execute_extended(std::uint8_t op) noexcept {
  switch (op) {
    case cfa_nop:
      return false;
    case cfa_set_loc:
      return set_location();
    case cfa_advance_loc1:
    case cfa_advance_loc2:
    case cfa_advance_loc4:
      return advance(program_.unsigned_of(std::size_t{1} << (op - cfa_advance_loc1)));
    case cfa_mips_advance_loc8:
      return advance(program_.u64());
    case cfa_def_cfa_offset_sf:
      set_cfa_offset(read_signed_factored_offset());
      return false;
    case cfa_def_cfa_register:
      set_cfa_register(read_reg());
      return false;
    case cfa_def_cfa:
    case cfa_def_cfa_sf: {
      const RegNum reg = read_reg();
      set_cfa(reg, op == cfa_def_cfa ? read_offset() : read_signed_factored_offset());
      return false;
    }
    case cfa_def_cfa_expression:
      row_.cfa = cfa_rule(block(), context_.arch.big_endian);
      return false;
    case cfa_remember_state:
      if (!saved_.has_initial()) fail(ErrorCode::bad_structure, "initial instructions of a CIE remember a state");
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

bool CfiProgram::set_location() noexcept {
  const Addr from = next_begin_;
  const EncodedPointer to = read_encoded(program_, cie_.pointer_encoding, context_, range_.begin);
  if (!program_.ok()) return false;
  if (to.indirect || to.value < from) {
    fail(ErrorCode::bad_structure, "DW_CFA_set_loc does not move forward");
    return false;
  }
  next_begin_ = to.value;
  return next_begin_ != from;
}

void CfiProgram::set_cfa(RegNum reg, std::int64_t offset) noexcept {
  row_.cfa = CfaRule::at(reg, offset);
  plain_offset_ = offset;
}

// The instructions that set one half of a CFA need the other (DWARF 5, 6.4.2.2).

/// Behind an expression the register takes the offset from before it, as in libgcc. Hand-written code of
/// libgcrypt.so.20 of Debian 12 realigns its stack, says the CFA as an expression, and so goes back to rsp. Before any
/// CFA the offset is 0: each CIE of RISC-V's assemblers begins so.
void CfiProgram::set_cfa_register(RegNum reg) noexcept { row_.cfa = CfaRule::at(reg, plain_offset_); }

void CfiProgram::set_rule(std::uint8_t op) noexcept {
  const bool big_endian = context_.arch.big_endian;
  const auto is_rule = [](std::uint8_t o) {
    return (o >= cfa_offset_extended && o <= cfa_register) || o == cfa_expression || o == cfa_offset_extended_sf ||
           (o >= cfa_val_offset && o <= cfa_val_expression) || o == cfa_gnu_negative_offset_extended;
  };
  if (!is_rule(op)) return fail(ErrorCode::bad_opcode, "unknown call frame instruction");
  const RegNum reg = read_reg();
  RegRule rule;
  switch (op) {
    case cfa_offset_extended:
      rule = RegRule::at_cfa(read_factored_offset());
      break;
    case cfa_offset_extended_sf:
      rule = RegRule::at_cfa(read_signed_factored_offset());
      break;
    case cfa_gnu_negative_offset_extended:  // obsolete: offset counted the other way
      rule = RegRule::at_cfa(factored(0 - program_.uleb()));
      break;
    case cfa_val_offset:
      rule = RegRule::is_cfa(read_factored_offset());
      break;
    case cfa_val_offset_sf:
      rule = RegRule::is_cfa(read_signed_factored_offset());
      break;
    case cfa_restore_extended:
      rule = saved_.initial_rule(reg);
      break;
    case cfa_undefined:
      rule = RegRule::undefined();
      break;
    case cfa_same_value:
      rule = RegRule::same();
      break;
    case cfa_register:
      rule = RegRule::in_reg(read_reg());
      break;
    case cfa_expression:
      rule = load_rule(block(), big_endian);
      break;
    default:
      rule = value_rule(block(), big_endian);
      break;
  }
  set(reg, rule);
}

/// DWARF for the Arm 64-bit Architecture, 4.4: RA_SIGN_STATE starts as 0, bit 0 says signed, bit 1 with the pc. State 0
/// is left out of the row, so that rows before and behind a signed stretch are equal.
void CfiProgram::toggle_sign_state(std::int64_t bits) noexcept {
  const RegNum reg = context_.arch.sign_state;
  if (reg == k_no_reg) return fail(ErrorCode::bad_opcode, "return addresses are not signed on this CPU");
  const RegRule old = row_.rule(reg);
  if (old.kind != RegRule::Kind::unspecified && old.kind != RegRule::Kind::constant)
    return fail(ErrorCode::bad_structure, "signing state that is not known is toggled");
  set(reg, RegRule::constant(old.offset ^ bits));
}

RegNum CfiProgram::read_reg() noexcept {
  const std::uint64_t number = program_.uleb();
  if (number < k_no_reg) return static_cast<RegNum>(number);
  fail(ErrorCode::bad_register, "register number of a call frame instruction");
  return k_no_reg;
}

Expression CfiProgram::block() noexcept {
  const std::uint64_t size = program_.uleb();
  return program_.bytes(size);
}

namespace {

template <class Rows>
[[gnu::noinline]] Status row_by(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept {
  Rows rows(fde, context, out);
  const Result<bool> found = rows.next_behind(at);
  if (!found) return found.error();
  if (!*found || !out.range.contains(at)) return Error{ErrorCode::no_info, at, "address outside of the FDE"};
  return Done{};
}

/// These have room for as many states as the FDE can remember, an instruction each. No compiler makes such FDEs.
class FdeRowsOfAnyStates : public CfiProgram {
 public:
  FdeRowsOfAnyStates(const Fde& fde, const CfiContext& context, FrameRow& row) noexcept
      : FdeRowsOfAnyStates(fde, context, row, Block(room_for(fde))) {}

 private:
  FdeRowsOfAnyStates(const Fde& fde, const CfiContext& context, FrameRow& row, Block room) noexcept
      : CfiProgram(fde, context, row, room.bytes()), room_(std::move(room)) {}
  static std::size_t room_for(const Fde& fde) noexcept {
    constexpr std::size_t k_most = std::size_t{64} << 20, k_largest = 2 * sizeof(FrameRow);
    return std::min(k_most / k_largest, fde.instructions.bytes.size() + 1) * k_largest;
  }

  Block room_;
};

}  // namespace

Status row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept {
  const auto is_too_deep = [](const Status& row) { return !row && row.error().code == ErrorCode::too_deep; };
  Status row = row_by<FdeRowsOfFewStates>(fde, context, at, out);
  if (is_too_deep(row)) row = row_by<FdeRows>(fde, context, at, out);
  if (is_too_deep(row)) row = row_by<FdeRowsOfAnyStates>(fde, context, at, out);
  return row;
}

Found own_row_of_entry(Addr entry, const CfiContext& context, Addr at, const Memory& memory, MemoryWindow& window,
                       FrameRow& out, AddrRange& code) noexcept {
  std::array<std::byte, 4096> buffer;
  MemoryView bytes(memory, window, buffer);
  Fde fde;
  const Found covers = read_fde_for(at, bytes, context, entry, fde);
  if (!covers || !*covers) return covers;
  if (const Status row = row_at(fde, context, at, out); !row) return row.error();
  if (!out.own_expressions()) return Error{ErrorCode::row_too_wide, fde.address, "expressions of a row"};
  code = fde.range;
  return true;
}

}  // namespace jitunwind

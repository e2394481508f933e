#include "jitunwind/unwind_core/rows/apply_row.h"

#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_expression.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind {
namespace {

/// One application of a row, with everything that its rules need.
struct Application {
  const RegisterFile& frame;
  const Arch& arch;
  const Memory& memory;
  MemoryWindow& window;
  Addr cfa = 0;
  Addr word_mask = arch.word_mask();

  Result<std::uint64_t> reg_value(RegNum reg) const noexcept {
    const auto value = frame.get_for_rule(arch.column(reg));
    if (!value) return Error{ErrorCode::undefined_register, reg, "a rule needs a register without value"};
    return *value;
  }

  Result<std::uint64_t> reg_plus(RegNum reg, std::int64_t offset) const noexcept {
    Result<std::uint64_t> value = reg_value(reg);
    if (value) *value = (*value + static_cast<std::uint64_t>(offset)) & word_mask;
    return value;
  }

  [[gnu::cold]] Result<std::uint64_t> expression(Expression e, std::optional<std::uint64_t> initial) const noexcept {
    return evaluate(e, {arch, frame, memory, window, initial});
  }

  Addr cfa_plus(const RegRule& rule) const noexcept {
    return (cfa + static_cast<std::uint64_t>(rule.offset)) & word_mask;
  }

  Result<Addr> cfa_of(const CfaRule& rule) const noexcept {
    switch (rule.kind) {
      case CfaRule::Kind::none:
        break;
      case CfaRule::Kind::offset:
        return reg_plus(rule.reg, rule.offset);
      case CfaRule::Kind::deref: {
        const auto at = reg_plus(rule.reg, rule.offset);
        if (!at) return at;
        auto value = read_word(memory, window, *at, arch, "saved CFA");
        if (value) *value = (*value + static_cast<std::uint64_t>(rule.add)) & word_mask;
        return value;
      }
      case CfaRule::Kind::expression:
        return expression(rule.expression, std::nullopt);
    }
    return Error{ErrorCode::bad_frame, 0, "row without CFA"};
  }

  /// The size of a saved register: one word, or 8 bytes for a vector register of a CPU with 4-byte words.
  std::size_t size_of(int column) const noexcept {
    if (arch.word_size == 8) return 8;
    const RegisterInfo* const reg = arch.by_column(column);
    return reg && reg->reg_class == RegClass::vector ? 8 : arch.word_size;
  }

  Status load(int column, const Result<Addr>& at, RegisterFile& out) const noexcept {
    if (!at) return at.error();
    const auto value = read_unsigned(memory, window, *at, size_of(column), arch.big_endian, "saved register");
    if (!value) return value.error();
    out.set_from_memory(column, *value, *at);
    return Done{};
  }

  Status compute(int column, const Result<std::uint64_t>& value, RegisterFile& out) const noexcept {
    if (!value) return value.error();
    out.set(column, *value);
    return Done{};
  }

  /// Recovers a register by a rule that compilers seldom make, or says that it has no value.
  [[gnu::cold, gnu::noinline]] Status recover_otherwise(int column, const RegRule& rule,
                                                        RegisterFile& out) const noexcept {
    using Kind = RegRule::Kind;
    switch (rule.kind) {
      case Kind::is_cfa:
        return compute(column, cfa_plus(rule), out);
      case Kind::at_reg:
        return load(column, reg_plus(rule.reg, rule.offset), out);
      case Kind::is_reg:
        return compute(column, reg_plus(rule.reg, rule.offset), out);
      case Kind::at_expression:
        return load(column, expression(rule.expression(), cfa), out);
      case Kind::is_expression:
        return compute(column, expression(rule.expression(), cfa), out);
      case Kind::constant:
        return compute(column, static_cast<std::uint64_t>(rule.offset), out);
      default:
        return Error{ErrorCode::undefined_register, static_cast<Addr>(column), "register has no value in the caller"};
    }
  }

  /// Recovers one register. The column stays unknown when the rule is "undefined" and after errors.
  Status recover(int column, const RegRule& rule, RegisterFile& out) const noexcept {
    using Kind = RegRule::Kind;
    switch (rule.kind) {
      case Kind::same:
        if (!frame.known(column)) break;
        out.set_from(column, frame, column);
        return Done{};
      case Kind::in_reg: {
        const int from = arch.column(rule.reg);
        if (!frame.known(from)) break;
        out.set_from(column, frame, from);
        return Done{};
      }
      case Kind::at_cfa:
        return load(column, cfa_plus(rule), out);
      default:
        break;
    }
    return recover_otherwise(column, rule, out);
  }
};

/// Whether the return address may be used as it stands. The question arises on CPUs that sign return addresses when the
/// signature bits are not known. Addresses have up to 48 bits, or 52 (Arm Architecture Reference Manual, FEAT_LVA) in
/// programs that have explicitly asked the kernel for such addresses (Documentation/arm64/memory.rst). Bits above the
/// lowest 48 are therefore a signature, unless there is code to return to.
bool may_be_unsigned(const Application& application, Addr address) noexcept {
  constexpr Addr k_usual = (Addr{1} << 48) - 1, k_most = (Addr{1} << 52) - 1;
  std::byte code;
  return address <= k_usual ||
         (address <= k_most && application.memory.read(address - 1, {&code, 1}, application.window) == 1);
}

/// The pc of a signal frame is the register pc, if the row mentions it. Otherwise the pc is the return address.
Status find_pc(const Application& application, const FrameRow& row, Caller& out) noexcept {
  const Arch& arch = application.arch;
  const bool has_pc_rule = row.signal_frame && row.rule(arch.pc).kind != RegRule::Kind::unspecified;
  const RegNum ra = has_pc_rule ? arch.pc : row.ra == k_no_reg ? arch.ra : row.ra;
  RegRule rule = row.rule(ra);
  if (rule.kind == RegRule::Kind::undefined) {
    out.outermost = true;
    return Done{};
  }
  // The return address of a link register CPU is still in that register at entry (DWARF 5, 6.4.1 "same").
  if (rule.kind == RegRule::Kind::unspecified) rule = RegRule::same();
  const int pc_column = arch.column(arch.pc);
  if (ra == arch.ra && rule.kind == RegRule::Kind::same && arch.ra_in_memory)
    return Error{ErrorCode::bad_frame, application.cfa, "row does not say where the return address is"};
  RegisterFile scratch;
  const int ra_column = arch.column(ra);
  if (!RegisterFile::has(ra_column)) return Error{ErrorCode::bad_register, ra, "return address column"};
  const Status recovered = application.recover(ra_column, rule, scratch);
  if (!recovered) {
    if (recovered.error().code == ErrorCode::undefined_register)
      return Error{ErrorCode::e_lr, application.cfa, "return address of a calling frame in a scratch register"};
    return recovered.error();
  }
  const std::uint64_t address = scratch.value(ra_column);
  if (arch.sign_state != k_no_reg && arch.address_mask == ~Addr{0} && !may_be_unsigned(application, address))
    return Error{ErrorCode::unknown_signature, address,
                 "return address, signed as on AArch64 by bits that are not known"};
  out.pc = address & arch.address_mask;
  out.registers.set_from(pc_column, scratch, ra_column);
  // The call that made this frame overwrote the link register, so an ordinary caller has no value in it.
  if (!arch.ra_in_memory && !row.signal_frame) out.registers.forget(arch.column(arch.ra));
  return Done{};
}

}  // namespace

Status apply_row(const FrameRow& row, const RegisterFile& frame, const Arch& arch, const Memory& memory,
                 MemoryWindow& window, Caller& out) noexcept {
  Application application{frame, arch, memory, window};
  out.registers.clear();
  out.pc = 0;
  out.outermost = false;
  const auto cfa = application.cfa_of(row.cfa);
  if (!cfa) return cfa.error();
  application.cfa = out.cfa = *cfa;

  for (const RegisterInfo& reg : arch.registers) {
    // caller.preserved = frame.preserved unless the row says otherwise
    if (!reg.preserved)
      out.registers.set_left(reg.column, frame);
    else if (frame.known(reg.column))
      out.registers.set_from(reg.column, frame, reg.column);
  }
  // caller.sp = cfa + bias (psABI; DWARF 5, 6.4: the CFA is the SP at the call)
  const int sp_column = arch.column(arch.sp);
  out.registers.set(sp_column,
                    (*cfa + static_cast<std::uint64_t>(std::int64_t{arch.caller_sp_bias})) & application.word_mask);

  for (const FrameRow::Entry& e : row.entries()) {
    const int column = arch.column(e.reg);
    if (!RegisterFile::has(column)) continue;
    out.registers.forget(column);
    const Status recovered = application.recover(column, e.rule, out.registers);
    if (!recovered && e.reg == arch.sp) return recovered.error();
  }
  return find_pc(application, row, out);
}

std::uint64_t RegisterFile::read_in_place(int column) const noexcept {
  return raw_word(places_[static_cast<std::size_t>(column)]);
}

void RegisterFile::set_from(int column, const RegisterFile& other, int other_column) noexcept {
  const SaveLocation place = other.location(other_column);
  const std::uint64_t value = other.value(other_column);
  switch (place.kind) {
    case SaveLocation::Kind::memory:
      return set_from_memory(column, value, place.at);
    case SaveLocation::Kind::reg:
      return set_from_register(column, value, place.reg);
    case SaveLocation::Kind::none:
      return set(column, value);
  }
}

void RegisterFile::set_left(int column, const RegisterFile& callee) noexcept {
  const auto value = callee.get_for_rule(column);
  if (!value || left_bit(column) == 0) return;
  set(column, *value);
  known_ &= ~(std::uint64_t{1} << column);
  left_ |= left_bit(column);
}

}  // namespace jitunwind

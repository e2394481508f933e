// The two readers of instructions' effects agree: the adapter's, which reads asmjit's operands, and that of the CPU's
// table, which reads bytes. The check of descriptions and guesses use the second one. Every instruction that asmjit
// encodes with some operands is compared.
#include <asmjit/x86.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"
#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::test {
namespace {

namespace v = asmjit_version;
namespace x86 = asmjit::x86;
using asmjit::Operand;
using Effect = derivation::Effect;
using derivation::RegSet;
using derivation::set_of;
using Operands = std::vector<Operand>;

constexpr RegNum k_rsp = 7;
constexpr RegSet k_general = 0xffff & ~set_of(k_rsp);

/// The effect of an instruction on general registers and on control.
struct Change {
  RegSet registers = 0;                  ///< those that it changes, without SP
  std::optional<std::int64_t> moves_sp;  ///< none: by an unknown amount
  enum class Goes { on, away, by_call, branches } goes = Goes::on;
  friend bool operator==(const Change&, const Change&) = default;
  std::string text() const {
    char out[80];
    std::snprintf(out, sizeof out, "%04llx %s %d", static_cast<unsigned long long>(registers),
                  moves_sp ? std::to_string(*moves_sp).c_str() : "?", static_cast<int>(goes));
    return out;
  }
};

Change by_operands(std::uint32_t id, const Operands& operands) {
  std::vector<Effect> effects;
  const asmjit::Operand_* const first = operands.data();  // both classes have the same members
  append_effects(asmjit::BaseInst(id), std::span(first, operands.size()), effects);
  Change out{0, 0};
  const auto move_sp = [&](std::optional<std::int64_t> by) {
    out.moves_sp = by && out.moves_sp ? std::optional(*out.moves_sp + *by) : std::nullopt;
  };
  const auto change = [&](RegNum reg, std::optional<std::int64_t> by = {}) {
    if (reg == k_rsp)
      move_sp(by);
    else if (reg < 16)
      out.registers |= set_of(reg);
  };
  for (const Effect& e : effects) {
    switch (e.kind) {
      case Effect::Kind::clobber:
        out.registers |= e.set & k_general;
        break;
      case Effect::Kind::push:
        move_sp(-e.value);
        break;
      case Effect::Kind::push_memory:
      case Effect::Kind::push_code:
        move_sp(-8);
        break;
      case Effect::Kind::pop:
        move_sp(e.value);
        if (e.reg != k_no_reg) change(e.reg);
        break;
      case Effect::Kind::copy:
        change(e.reg, e.base == k_rsp ? std::optional(e.value) : std::nullopt);
        break;
      case Effect::Kind::exchange:
        change(e.base);
        [[fallthrough]];
      case Effect::Kind::load:
      case Effect::Kind::address_of:
        change(e.reg);
        break;
      case Effect::Kind::lower_unknown:
      case Effect::Kind::raise_unknown:
      case Effect::Kind::sp_unknown:
        out.moves_sp.reset();
        break;
      case Effect::Kind::call:
        out.goes = Change::Goes::by_call;
        break;
      case Effect::Kind::branch:
      case Effect::Kind::branch_elsewhere:
        out.goes = Change::Goes::branches;
        break;
      case Effect::Kind::ret:
      case Effect::Kind::jump:
      case Effect::Kind::jump_elsewhere:
      case Effect::Kind::jump_indirect:
      case Effect::Kind::trap:
      case Effect::Kind::cannot_return:
        out.goes = Change::Goes::away;
        break;
      case Effect::Kind::compare:
      case Effect::Kind::store:
        break;
    }
  }
  return out;
}

Change by_bytes(const MachineInstruction& i) {
  using Kind = MachineInstruction::Effect;
  Change out{i.written & k_general, 0};
  if ((i.written & set_of(k_rsp)) != 0) out.moves_sp.reset();
  const auto change = [&](RegNum reg, std::optional<std::int64_t> by = {}) {
    if (reg == k_rsp)
      out.moves_sp = by;
    else if (reg < 16)
      out.registers |= set_of(reg);
  };
  switch (i.effect) {
    case Kind::push:
      out.moves_sp = -i.amount;
      break;
    case Kind::pop:
      out.moves_sp = i.amount;
      if (i.reg != k_no_reg) change(i.reg);
      break;
    case Kind::set:
      change(i.reg, i.base == k_rsp ? std::optional(i.amount) : std::nullopt);
      break;
    case Kind::exchange:
      change(i.base);
      [[fallthrough]];
    case Kind::load:
      change(i.reg);
      break;
    case Kind::enter:
      out.moves_sp = -8 - i.amount;
      change(i.reg);
      break;
    case Kind::leave:
      out.moves_sp.reset();
      change(i.reg);
      break;
    case Kind::call:
      out.goes = Change::Goes::by_call;
      break;
    case Kind::branch:
      out.goes = Change::Goes::branches;
      break;
    case Kind::jump:
    case Kind::ret:
    case Kind::stop:
      out.goes = Change::Goes::away;
      break;
    default:
      break;
  }
  return out;
}

/// Some instructions of asmjit have two: wait, and another one. None: one is not known.
std::optional<Change> by_bytes(std::span<const std::byte> bytes) {
  Change all{0, 0};
  while (!bytes.empty()) {
    const MachineInstruction i = arch::x86_64.read_instruction(bytes, 0);
    if (i.effect == MachineInstruction::Effect::unknown || i.length == 0) return std::nullopt;
    const Change one = by_bytes(i);
    all.registers |= one.registers;
    all.moves_sp = all.moves_sp && one.moves_sp ? std::optional(*all.moves_sp + *one.moves_sp) : std::nullopt;
    all.goes = std::max(all.goes, one.goes);
    bytes = bytes.subspan(i.length);
  }
  return all;
}

struct Difference {
  const char* end;  ///< of the encoding
  const char* why;
};
/// Instructions of which the two may say something else.
const std::map<std::string, Difference> k_differ{
    {"call", {" e8 00 00 00 00", "the table reads a call of the next instruction as a push"}},
    {"dec", {" 48 ff cc", "the table takes SP for lost"}},
    {"inc", {" 48 ff c4", "the table takes SP for lost"}},
    {"int3", {" cc", "compilers end code that does not return by it, and authors let a debugger stop there"}},
    {"hreset", {"", "asmjit says that it writes the register that it reads"}},
    {"incsspd", {"", "asmjit says that it writes the register that it reads"}},
    {"incsspq", {"", "asmjit says that it writes the register that it reads"}},
    {"skinit", {"", "of hypervisors"}},
    {"vmrun", {"", "of hypervisors"}},
    {"wrssd", {"", "asmjit encodes a register for memory"}},
    {"wrssq", {"", "asmjit encodes a register for memory"}},
    {"wrussd", {"", "asmjit encodes a register for memory"}},
    {"wrussq", {"", "asmjit encodes a register for memory"}},
    {"xchg", {" 90", "of eax or ax with itself is a nop"}},
};

/// Every instruction with up to two of these, and with one of a few more.
const std::vector<Operand>& operands_to_try() {
  static const std::vector<Operand> all{x86::rbx,
                                        x86::rsp,
                                        x86::r13,
                                        x86::esi,
                                        x86::r9w,
                                        x86::bl,
                                        x86::ah,
                                        x86::rax,
                                        x86::eax,
                                        x86::ax,
                                        x86::al,
                                        x86::cl,
                                        x86::dx,
                                        x86::ecx,
                                        x86::xmm1,
                                        x86::ymm2,
                                        x86::k1,
                                        x86::mm1,
                                        x86::st0,
                                        x86::ptr(x86::rdi, 16),
                                        x86::ptr(x86::rsp, 8),
                                        asmjit::Imm(8)};
  return all;
}

class Comparison {
 public:
  Comparison() {
    code_.init(asmjit::Environment(asmjit::Arch::kX64));
    code_.attach(&a_);
    a_.JITUNWIND_ASMJIT(addDiagnosticOptions, add_diagnostic_options)(asmjit::DiagnosticOptions::kValidateAssembler);
  }
  void compare(std::uint32_t id, const Operands& operands) {
    a_.JITUNWIND_ASMJIT(setOffset, set_offset)(0);
    const auto error = a_.JITUNWIND_ASMJIT(emitOpArray, emit_op_array)(id, operands.data(), operands.size());
    if (error != asmjit::kErrorOk) return;
    const std::span<const std::uint8_t> bytes(code_.JITUNWIND_ASMJIT(textSection, text_section)()->data(), a_.offset());
    ++compared;
    const std::optional<Change> other = by_bytes(std::as_bytes(bytes));
    unknown += !other;
    if (!other) return;
    const Change one = by_operands(id, operands);
    if (one == *other) return;
    std::string text = one.text() + " / " + other->text() + ":";
    for (const std::uint8_t byte : bytes) {
      char hex[4];
      std::snprintf(hex, sizeof hex, " %02x", byte);
      text += hex;
    }
    differ[v::instruction_name(id)].push_back(text);
  }

  std::size_t compared = 0, unknown = 0;
  std::map<std::string, std::vector<std::string>> differ;

 private:
  asmjit::CodeHolder code_;
  x86::Assembler a_;
};

TEST(AsmjitEffects, AreThoseOfTheBytes) {
  Comparison all;
  const std::vector<Operand>& some = operands_to_try();
  const Operands few{x86::rbx, x86::ecx, x86::cl, x86::xmm1, x86::ymm2, x86::ptr(x86::rdi, 16), asmjit::Imm(8)};
  for (std::uint32_t id = 1; id < x86::Inst::_kIdCount; ++id) {
    all.compare(id, {});
    for (const Operand& a : some) {
      all.compare(id, {a});
      for (const Operand& b : some) {
        all.compare(id, {a, b});
        for (const Operand& c : few) all.compare(id, {a, b, c});
      }
    }
  }
  std::printf("%zu instructions, %zu unknown to the table\n", all.compared, all.unknown);
  EXPECT_GT(all.compared, 10'000u);
  for (const auto& [name, texts] : all.differ) {
    const auto known = k_differ.find(name);
    for (const std::string& text : texts)
      if (known == k_differ.end() || !text.ends_with(known->second.end)) ADD_FAILURE() << name << " " << text;
  }
}

}  // namespace
}  // namespace jitunwind::test

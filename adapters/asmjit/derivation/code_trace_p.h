// The trace of an emitter: every instruction, its place, and its effects on SP, registers and the stack. The trace does
// not depend on asmjit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::derivation {

/// A set of registers, one bit per DWARF number. x86-64: general registers 0..15, return address 16, xmm0.. from 17.
using RegSet = std::uint64_t;
inline constexpr std::size_t k_tracked_registers = 33;
constexpr RegSet set_of(RegNum reg) noexcept { return RegSet{1} << reg; }
constexpr bool has(RegSet set, RegNum reg) noexcept { return (set >> reg & 1) != 0; }
/// Precondition: not empty.
constexpr RegNum first_of(RegSet set) noexcept { return static_cast<RegNum>(std::countr_zero(set)); }

using LabelId = std::uint32_t;
inline constexpr LabelId k_no_label = UINT32_MAX;

/// One step of an instruction. An instruction with several effects (leave) has them in order. An instruction without
/// effects changes nothing that frames depend on.
struct Effect {
  enum class Kind : std::uint8_t {
    clobber,           ///< every register of `set` gets an unknown value
    push,              ///< SP -= value; [SP] = reg (k_no_reg: an unknown value)
    push_memory,       ///< SP -= 8; [SP] = old value of [base + value]
    push_code,         ///< SP -= 8; [SP] = address of `label`, which follows the instruction: call next; next:
    pop,               ///< reg = [SP] (k_no_reg: no register); SP += value
    copy,              ///< reg = base + value, 8 bytes; the upper bytes of a vector register become 0
    exchange,          ///< reg and base
    compare,           ///< reg, which is SP, with base: a branch that follows may prove that they are equal
    lower_unknown,     ///< SP is lowered by an unknown amount, perhaps 0: by the value of reg; to a multiple of `value`
    raise_unknown,     ///< SP is raised by the value of reg or by another amount, and may as well be lowered
    store,             ///< [base + value] = reg (k_no_reg: an unknown value), size bytes
    load,              ///< reg = [base + value]
    address_of,        ///< reg = address of `label`
    call,              ///< to `label`, to the address in reg, or elsewhere; then SP += value (popped arguments)
    ret,               ///< return, then SP += value
    jump,              ///< to `label`
    branch,            ///< to `label` or to the next instruction; value: a Condition
    jump_elsewhere,    ///< to code that no label of this trace names
    branch_elsewhere,  ///< to such code or to the next instruction
    jump_indirect,  ///< to the address in reg; through the table at `label`; to one of jump_targets[value] (value >= 0)
    trap,           ///< control ends here
    sp_unknown,     ///< SP gets a value that cannot be followed
    cannot_return,  ///< leaves in a way that no caller sees (iret, sysret)
  };
  enum Condition : std::int8_t { any = -1, equal, different };
  Kind kind = Kind::clobber;
  RegNum reg = k_no_reg;
  RegNum base = k_no_reg;
  std::uint32_t size = 8;
  LabelId label = k_no_label;
  std::int64_t value = 0;
  RegSet set = 0;
};

/// Offsets are in bytes from the start of the section.
struct TracedInstruction {
  std::uint32_t section = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t first_effect = 0;
  std::uint16_t effects = 0;
  std::uint16_t mnemonic = 0;  ///< the emitter's own number
  std::uint32_t bytes = 0;  ///< hash of its bytes at the time of writing; 0: asmjit itself fills in some of them later
};

/// Mnemonic of alignment bytes that an emitter inserts: any number of instructions without effect.
inline constexpr std::uint16_t k_padding = 0xffff;
/// Mnemonic of an instruction that was written as bytes.
inline constexpr std::uint16_t k_embedded = 0xfffe;

/// Bytes that are no instructions.
struct TracedData {
  std::uint32_t section = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct CodePlace {
  std::uint32_t section = 0;
  std::uint32_t offset = 0;
  friend auto operator<=>(const CodePlace&, const CodePlace&) = default;
};

/// The entry of a procedure by calls.
struct ProcedureStart {
  CodePlace place;
  std::string name;
  RegSet preserved = 0;  ///< registers that its calling convention preserves for callers; 0: the psABI's
  bool declared = true;  ///< false: a start only if no other code leads there
};

/// The address of a label, in data.
struct EmbeddedLabel {
  CodePlace place;
  LabelId label = k_no_label;
};

/// The landing pad of exceptions that leave the calls between two labels.
struct TracedCallSite {
  LabelId begin = k_no_label;
  LabelId end = k_no_label;
  LabelId pad = k_no_label;                                    ///< none: std::terminate()
  std::vector<std::function<void(x86_64::Builder&)>> reasons;  ///< each adds a reason to a builder's call_site()
};

/// The handler for exceptions of the procedure that contains the place; it replaces the reasons of the call sites.
struct TracedFrameHandler {
  CodePlace place;
  FrameHandler handler;
};

/// A complete trace; every list is in the order of its places before the analysis.
struct CodeTrace {
  std::vector<TracedInstruction> instructions;
  std::vector<Effect> effects;
  std::vector<TracedData> data;
  std::vector<EmbeddedLabel> embedded;
  std::vector<ProcedureStart> starts;
  std::vector<std::vector<LabelId>> jump_targets;
  std::vector<TracedCallSite> call_sites;  ///< in the order of the calls of call_site()
  std::vector<TracedFrameHandler> frame_handlers;
  std::vector<std::optional<CodePlace>> labels;  ///< by LabelId; none: not bound here
  std::vector<LabelId> internal;                 ///< labels that no code outside the trace can name
};

/// The reason why the frames of some code cannot be derived.
struct Refusal {
  CodePlace place;
  std::optional<std::uint16_t> mnemonic;  ///< mnemonic of the instruction at fault
  std::string reason;
  /// One instruction that contributed to the refusal.
  struct Cause {
    CodePlace place;
    std::optional<std::uint16_t> mnemonic;
    std::string deed;  ///< "changed it"
  };
  std::vector<Cause> causes;
};

}  // namespace jitunwind::derivation

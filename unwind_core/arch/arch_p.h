// Parts of a CPU's table that no public header has: signatures of return addresses, records behind a context's
// registers, and the columns that a context always has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/above_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind {

/// The CPUs of arch_list.def, in its order. The core alone knows that of this machine.
JITUNWIND_ABOVE std::span<const Arch* const> every_arch() noexcept;

/// The instructions of this machine's CPU. Both also work on CPUs that sign nothing: they change nothing there.
/// Signal-safe.
struct SigningInstructions {
  /// Whether this CPU signs addresses, and the kernel lets programs do so.
  bool (*are_there)() noexcept;
  /// Signs an address with this process's key and the modifier. Precondition: key is a or b.
  Addr (*sign)(Addr address, Addr modifier, SigningKey key) noexcept;
  /// Removes the signature of an address.
  Addr (*strip)(Addr address) noexcept;

  /// Whether `address` carries this process's signature over it and the modifier.
  bool is_signed_so(Addr address, Addr modifier, SigningKey key) const noexcept {
    const Addr plain = strip(address);
    const auto is_by = [&](SigningKey one) { return sign(plain, modifier, one) == address; };
    if (key != SigningKey::any) return is_by(key);
    return is_by(SigningKey::a) || is_by(SigningKey::b);
  }
};

/// The contents of a ucontext_t after the registers that it always has, on CPUs whose kernel puts records there. Each
/// record begins with its kind and its size in bytes, 4 bytes each, and the last one has kind 0. One of the records has
/// the vector registers. The kernel puts that first, but does not promise it: RegisterInfo::ucontext is their place if
/// it is the first.
struct ContextRecords {
  std::int16_t first;  ///< offset of the first record in a ucontext_t
  std::uint16_t room;  ///< bytes for all of them
  std::uint32_t kind;  ///< kind of the record with vector registers
  std::uint32_t size;  ///< size of that record
  RegNum vector_words;  ///< pseudo register: number of 8-byte words of a scalable vector
  /// That number, which each thread may change; 0: the CPU has none. Null on other machines. Signal-safe.
  std::uint64_t (*count_vector_words)() noexcept;
};

static_assert(k_max_values % 4 == 0);  // RegisterFile::set_from_context() takes them by fours

/// It is never defined: a constant expression cannot call it.
void columns_differ_or_have_a_gap();
/// The function does not compile if the table has another form.
consteval ContextColumns columns_in_context(std::span<const RegisterInfo> registers) {
  ContextColumns columns;
  for (const RegisterInfo& reg : registers) {
    if (reg.ucontext < 0 || reg.reg_class == RegClass::vector) continue;
    if (reg.column != columns.count || reg.dwarf != columns.count) columns_differ_or_have_a_gap();
    columns.offsets[columns.count++] = reg.ucontext;
  }
  return columns;
}

}  // namespace jitunwind

namespace jitunwind::arch {

inline MachineInstruction with_effect(MachineInstruction::Effect effect, RegNum reg = k_no_reg, std::int64_t amount = 0,
                                      RegNum base = k_no_reg) noexcept {
  MachineInstruction i;
  i.effect = effect;
  i.reg = reg;
  i.base = base;
  i.amount = amount;
  return i;
}
/// An instruction that only writes registers; a bit for each place.
inline MachineInstruction that_writes(std::uint32_t registers) noexcept {
  MachineInstruction i = with_effect(MachineInstruction::Effect::none);
  i.written = registers;
  return i;
}

[[gnu::visibility("default")]] MachineInstruction read_x86_instruction(std::span<const std::byte> bytes, Addr at) noexcept;
[[gnu::visibility("default")]] MachineInstruction read_x86_64_instruction(std::span<const std::byte> bytes, Addr at) noexcept;
[[gnu::visibility("default")]] MachineInstruction read_a64_instruction(std::span<const std::byte> bytes, Addr at) noexcept;

}  // namespace jitunwind::arch

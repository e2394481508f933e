// Registers of a target's threads, as core files and ptrace have them.
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/context_p.h"

namespace jitunwind {
namespace {

/// Those of one class, from where the table has them in `block`.
Status take_registers(std::span<const std::byte> block, RegClass of_class, std::size_t size, const Arch& arch,
                      RegisterFile& registers) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.prstatus < 0 || reg.column < 0 || reg.reg_class != of_class) continue;
    ByteReader reader(block, arch.big_endian);
    const int low = of_class == RegClass::vector ? arch.low_half() : 0;
    reader.skip(static_cast<std::uint64_t>(reg.prstatus + low));
    const std::uint64_t value = reader.unsigned_of(size);
    if (!reader.ok()) return Error{ErrorCode::truncated, reg.dwarf, "registers of a thread"};
    registers.set_from_register(reg.column, value, reg.dwarf);
  }
  return Done{};
}

}  // namespace

/// Reads struct user_sve_header of asm/ptrace.h: two sizes of 4 bytes; length of vectors in bytes, greatest length and
/// flags, of 2 bytes each. Streaming mode has the length of NT_ARM_SSVE, whose flags then have SVE_PT_REGS_SVE.
void VectorWords::take(unsigned kind, std::span<const std::byte> regset, bool big_endian) noexcept {
  constexpr unsigned k_sve = 0x405, k_streaming_sve = 0x40b;  // NT_ARM_SVE, NT_ARM_SSVE
  constexpr std::uint16_t k_is_in_use = 1, k_unit = 16, k_longest = 512 * k_unit;
  ByteReader reader(regset, big_endian);
  reader.skip(8);
  const std::uint16_t bytes = reader.u16();
  reader.skip(2);
  const std::uint16_t flags = reader.u16();
  if (!reader.ok() || bytes % k_unit != 0 || bytes > k_longest) return;
  const bool is_streaming = kind == k_streaming_sve && (flags & k_is_in_use) != 0;
  if (is_streaming || (kind == k_sve && count_ == 0)) count_ = bytes / 8;
}

void VectorWords::add_to(const Arch& arch, RegisterFile& registers) const noexcept {
  if (arch.records && count_ != 0) registers.set(arch.column(arch.records->vector_words), count_);
}

Result<RegisterFile> registers_from_prstatus(std::span<const std::byte> block, const Arch& arch) noexcept {
  RegisterFile registers;
  if (const Status taken = take_registers(block, RegClass::general, arch.word_size, arch, registers); !taken)
    return taken.error();
  return registers;
}

Status add_fp_registers(std::span<const std::byte> block, const Arch& arch, RegisterFile& registers) noexcept {
  return take_registers(block, RegClass::vector, sizeof(std::uint64_t), arch, registers);
}

}  // namespace jitunwind

#include "jitunwind/unwind_core/walk/context.h"

#include <cstring>

#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

namespace {

/// Those of one class, from where the table has them in `block`.
Status take_registers(std::span<const std::byte> block, RegClass of_class, std::size_t size, const Arch& arch,
                      RegisterFile& registers) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.prstatus < 0 || reg.column < 0 || reg.reg_class != of_class) continue;
    ByteReader reader(block, arch.big_endian);
    reader.skip(static_cast<std::uint64_t>(reg.prstatus));
    const std::uint64_t value = reader.unsigned_of(size);
    if (!reader.ok()) return Error{ErrorCode::truncated, reg.dwarf, "registers of a thread"};
    registers.set_from_register(reg.column, value, reg.dwarf);
  }
  return Done{};
}

}  // namespace

Result<RegisterFile> registers_from_prstatus(std::span<const std::byte> block, const Arch& arch) noexcept {
  RegisterFile registers;
  if (const Status taken = take_registers(block, RegClass::general, arch.word_size, arch, registers); !taken)
    return taken.error();
  return registers;
}

Status add_fp_registers(std::span<const std::byte> block, const Arch& arch, RegisterFile& registers) noexcept {
  return take_registers(block, RegClass::vector, sizeof(std::uint64_t), arch, registers);
}

void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0 || !registers.known(reg.column)) continue;
    const std::uint64_t value = registers.value(reg.column);
    std::memcpy(static_cast<std::byte*>(ucontext) + reg.ucontext, &value, arch.word_size);
  }
}

}  // namespace jitunwind

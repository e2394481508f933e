#include "jitunwind/unwind_core/walk/context.h"

#include <cstring>

#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

Result<RegisterFile> registers_from_prstatus(std::span<const std::byte> block, const Arch& arch) noexcept {
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.prstatus < 0 || reg.column < 0) continue;
    ByteReader reader(block, arch.big_endian);
    reader.skip(static_cast<std::uint64_t>(reg.prstatus));
    const std::uint64_t value = reader.unsigned_of(arch.word_size);
    if (!reader.ok()) return Error{ErrorCode::truncated, reg.dwarf, "registers of a thread"};
    registers.set_from_register(reg.column, value, reg.dwarf);
  }
  return registers;
}

void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0 || !registers.known(reg.column)) continue;
    const std::uint64_t value = registers.value(reg.column);
    std::memcpy(static_cast<std::byte*>(ucontext) + reg.ucontext, &value, arch.word_size);
  }
}

}  // namespace jitunwind

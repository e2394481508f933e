#include "unwind_core/context.h"

#include <cstring>

namespace jitunwind {

RegisterFile registers_from_ucontext(const void* ucontext, const Arch& arch) noexcept {
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.column < 0 || reg.ucontext < 0) continue;
    std::uint64_t value = 0;  // word_size bytes of it are written: the host's own ucontext, so its own byte order
    std::memcpy(&value, static_cast<const std::byte*>(ucontext) + reg.ucontext, arch.word_size);
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

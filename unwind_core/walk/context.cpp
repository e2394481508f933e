#include "jitunwind/unwind_core/walk/context.h"

#include <cstring>

namespace jitunwind {

void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0 || !registers.known(reg.column)) continue;
    const std::uint64_t value = registers.value(reg.column);
    std::memcpy(static_cast<std::byte*>(ucontext) + reg.ucontext, &value, arch.word_size);
  }
}

}  // namespace jitunwind

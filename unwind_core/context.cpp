#include "unwind_core/context.h"

#include <cstring>

namespace jitunwind {

namespace {

/// The host's own ucontext_t, so its own byte order.
template <class Word>
RegisterFile registers_of_words(const std::byte* ucontext, const Arch& arch) noexcept {
  RegisterFile registers;
  registers.set_from_registers(arch.registers, [&](const RegisterInfo& reg) -> std::optional<std::uint64_t> {
    if (reg.ucontext < 0) return std::nullopt;
    Word value;
    std::memcpy(&value, ucontext + reg.ucontext, sizeof value);
    return value;
  });
  return registers;
}

}  // namespace

RegisterFile registers_from_ucontext(const void* ucontext, const Arch& arch) noexcept {
  const auto* const bytes = static_cast<const std::byte*>(ucontext);
  return arch.word_size == sizeof(std::uint64_t) ? registers_of_words<std::uint64_t>(bytes, arch)
                                                 : registers_of_words<std::uint32_t>(bytes, arch);
}

void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0 || !registers.known(reg.column)) continue;
    const std::uint64_t value = registers.value(reg.column);
    std::memcpy(static_cast<std::byte*>(ucontext) + reg.ucontext, &value, arch.word_size);
  }
}

}  // namespace jitunwind

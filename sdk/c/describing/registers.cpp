#include "jitunwind/sdk/c/registers.h"

#include <cstdio>

#include "jitunwind/sdk/c/describing/builder_p.h"

namespace jitunwind::c {
namespace {

const RegisterInfo* register_of(ju_reg reg, const Arch* arch) noexcept {
  return arch ? arch->by_dwarf(dwarf_of(reg)) : nullptr;
}

}  // namespace

const Arch* arch_of(ju_cpu cpu) noexcept {
  if (cpu == JU_CPU_HOST) return host_arch();
  for (const Arch* const arch : all_arches())
    if (cpu_of(*arch) == cpu) return arch;
  return nullptr;
}

ju_status check_register(ju_reg reg, const Arch& arch, ju_error* error) noexcept {
  if (cpu_of(reg) == arch.elf_machine) [[likely]]
    return JU_OK;
  const Arch* const other = arch_of(static_cast<ju_cpu>(cpu_of(reg)));
  const RegisterInfo* const info = cpu_of(reg) == 0 ? nullptr : register_of(reg, other);
  std::array<char, 128> text;
  if (info)
    std::snprintf(text.data(), text.size(), "%s is a register of %s, not of %s", info->name, other->name, arch.name);
  else
    std::snprintf(text.data(), text.size(), "0x%x is no register of %s", static_cast<unsigned>(reg), arch.name);
  return tell(error, JU_OTHER_CPU, reg, "reg", text.data());
}

}  // namespace jitunwind::c

ju_cpu ju_host_cpu(void) {
  const jitunwind::Arch* const arch = jitunwind::host_arch();
  return arch ? jitunwind::c::cpu_of(*arch) : JU_CPU_HOST;
}

ju_reg ju_register_number(ju_cpu cpu, uint16_t dwarf) {
  const jitunwind::Arch* const arch = jitunwind::c::arch_of(cpu);
  if (!arch) return JU_NO_REG;
  return static_cast<ju_reg>(arch->elf_machine) << jitunwind::c::k_cpu_shift | dwarf;
}

ju_reg ju_register_by_name(ju_cpu cpu, const char* name) {
  const jitunwind::Arch* const arch = jitunwind::c::arch_of(cpu);
  std::string_view text;
  if (!arch || !name || !jitunwind::c::read_string(name, text)) return JU_NO_REG;
  const jitunwind::RegisterInfo* const info = arch->by_name(text);
  return info ? ju_register_number(cpu, info->dwarf) : static_cast<ju_reg>(JU_NO_REG);
}

const char* ju_register_name(ju_reg reg) {
  using namespace jitunwind::c;
  const auto* const info = cpu_of(reg) == 0 ? nullptr : register_of(reg, arch_of(static_cast<ju_cpu>(cpu_of(reg))));
  return info ? info->name : "";
}

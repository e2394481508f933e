#include "jitunwind/unwind_core/arch/arch.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__LP64__)
#define JITUNWIND_HOST_X86_64 true
#else
#define JITUNWIND_HOST_X86_64 false
#endif
#if defined(__aarch64__) && !defined(__AARCH64EB__)
#define JITUNWIND_HOST_AARCH64 true
#else
#define JITUNWIND_HOST_AARCH64 false
#endif

namespace jitunwind {
namespace {

struct Listed {
  const Arch* arch;
  bool is_host;
};

constexpr Listed k_listed[] = {
#define JITUNWIND_ARCH(identifier, host_condition) {&arch::identifier, host_condition},
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
};

constexpr const Arch* k_arches[] = {
#define JITUNWIND_ARCH(identifier, host_condition) &arch::identifier,
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
};

}  // namespace

const RegisterInfo* Arch::search_by_dwarf(unsigned number) const noexcept {
  const auto it = std::lower_bound(registers.begin(), registers.end(), number,
                                   [](const RegisterInfo& r, unsigned n) { return r.dwarf < n; });
  return it != registers.end() && it->dwarf == number ? &*it : nullptr;
}

const RegisterInfo* Arch::by_perf(int number) const noexcept {
  if (number < 0) return nullptr;
  for (const RegisterInfo& r : registers)
    if (r.perf == number) return &r;
  return nullptr;
}

const RegisterInfo* Arch::by_libunwind(int number) const noexcept {
  if (number < 0) return nullptr;
  const auto index = static_cast<std::size_t>(number);
  if (index < registers.size() && registers[index].libunwind == number) return &registers[index];
  for (const RegisterInfo& r : registers)
    if (r.libunwind == number) return &r;
  return nullptr;
}

const RegisterInfo* Arch::by_column(int column) const noexcept {
  if (column < 0) return nullptr;
  const auto index = static_cast<std::size_t>(column);
  if (index < registers.size() && registers[index].column == column) return &registers[index];
  for (const RegisterInfo& r : registers)
    if (r.column == column) return &r;
  return nullptr;
}

const RegisterInfo* Arch::by_name(std::string_view wanted) const noexcept {
  if (wanted == "ra") return by_dwarf(ra);
  for (const RegisterInfo& r : registers)
    if (wanted == r.name) return &r;
  return nullptr;
}

Arch with_byte_order(const Arch& arch, bool big_endian) noexcept {
  Arch other = arch;
  other.big_endian = big_endian;
  return other;
}

std::span<const Arch* const> all_arches() noexcept { return k_arches; }

const Arch* find_arch(std::string_view name) noexcept {
  for (const Arch* a : k_arches)
    if (name == a->name) return a;
  return nullptr;
}

const Arch* find_arch(unsigned elf_machine, bool big_endian) noexcept {
  for (const Arch* a : k_arches)
    if (a->elf_machine == elf_machine && a->big_endian == big_endian) return a;
  return nullptr;
}

const Arch* host_arch() noexcept {
  for (const Listed& l : k_listed)
    if (l.is_host) return l.arch;
  return nullptr;
}

}  // namespace jitunwind

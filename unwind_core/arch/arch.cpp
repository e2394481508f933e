#include "jitunwind/unwind_core/arch/arch.h"

#include <algorithm>

#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"

namespace jitunwind {
namespace {

// The CPU's identifier is given by the build.
constexpr const Arch* k_host[] = {&arch::JITUNWIND_HOST};

}  // namespace

const RegisterInfo* Arch::search_by_dwarf(unsigned number) const noexcept {
  const auto it = std::lower_bound(registers.begin(), registers.end(), number,
                                   [](const RegisterInfo& r, unsigned n) { return r.dwarf < n; });
  return it != registers.end() && it->dwarf == number ? &*it : nullptr;
}

int Arch::search_column(RegNum dwarf) const noexcept {
  const RegisterInfo* const reg = by_dwarf(dwarf);
  return reg ? reg->column : -1;
}

const RegisterInfo* Arch::by_perf(int number) const noexcept {
  if (number < 0) return nullptr;
  for (const RegisterInfo& r : registers)
    if (r.perf == number) return &r;
  return nullptr;
}

const RegisterInfo* Arch::search_by_libunwind(int number) const noexcept {
  if (number < 0) return nullptr;
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

std::span<const Arch* const> all_arches() noexcept { return is_above(every_arch) ? every_arch() : k_host; }

[[gnu::hot]] Arch arch_of_this_machine() noexcept {
  constexpr Addr k_below_55 = (Addr{1} << 55) - 1;  // bit 55 distinguishes the kernel's addresses from programs'
  Arch arch = *host_arch();
  const SigningInstructions* const keys = keys_of_this_process();
  if (arch.signing) arch.address_mask = keys ? keys->strip(k_below_55) : ~Addr{0};
  return arch;
}

[[gnu::hot]] const SigningInstructions* keys_of_this_process() noexcept {
  const SigningInstructions* const signing = host_arch()->signing;
  return signing && signing->are_there() ? signing : nullptr;
}

const Arch* host_arch() noexcept { return k_host[0]; }

}  // namespace jitunwind

#include "jitunwind/unwind_core/arch/arch.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"

namespace jitunwind {
namespace {

constexpr const Arch* k_arches[] = {
#define JITUNWIND_ARCH(identifier) &arch::identifier,
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
};

/// The CPUs of k_arches with the byte order of memory that is not the table's. They are made when the library is
/// loaded: the first use would need a lock.
const std::array<Arch, std::size(k_arches)> k_other_orders = []<std::size_t... i>(std::index_sequence<i...>) {
  return std::array<Arch, std::size(k_arches)>{with_byte_order(*k_arches[i], !k_arches[i]->big_endian)...};
}(std::make_index_sequence<std::size(k_arches)>());

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
  other.is_host = arch.is_host && big_endian == arch.big_endian;
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
  for (std::size_t i = 0; i < std::size(k_arches); ++i) {
    const Arch& arch = *k_arches[i];
    if (arch.elf_machine != elf_machine) continue;
    if (arch.big_endian == big_endian) return &arch;
    return arch.bi_endian ? &k_other_orders[i] : nullptr;
  }
  return nullptr;
}

const Arch* also_runs(const Arch& arch) noexcept { return &arch == &arch::x86_64 ? &arch::x86 : nullptr; }

Arch arch_of_this_machine() noexcept {
  constexpr Addr k_below_55 = (Addr{1} << 55) - 1;  // bit 55 distinguishes the kernel's addresses from programs'
  Arch arch = *host_arch();
  const SigningInstructions* const keys = keys_of_this_process();
  if (arch.signing) arch.address_mask = keys ? keys->strip(k_below_55) : ~Addr{0};
  return arch;
}

const SigningInstructions* keys_of_this_process() noexcept {
  const SigningInstructions* const signing = host_arch()->signing;
  return signing && signing->are_there() ? signing : nullptr;
}

/// psABI for i386, table 2.1; all other CPUs align them by their size.
std::size_t alignment_of_8_bytes(const Arch& arch) noexcept {
  return arch.elf_machine == arch::x86.elf_machine ? 4 : 8;
}

const Arch* host_arch() noexcept {
  for (const Arch* a : k_arches)
    if (a->is_host) return a;
  return nullptr;
}

}  // namespace jitunwind

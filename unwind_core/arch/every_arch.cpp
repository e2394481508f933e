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

std::span<const Arch* const> every_arch() noexcept { return k_arches; }

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
}  // namespace jitunwind

#ifdef JITUNWIND_TYPES_OF_CORE
// Type information of classes that are derived from elsewhere and have key functions in the core, which is compiled
// without RTTI: a pointer behind two words of a table, and the name (Itanium C++ ABI, 2.9.4 and 2.9.5).
extern "C" const void* const k_functions_of_class_types[] __asm__("_ZTVN10__cxxabiv117__class_type_infoE");
#define JITUNWIND_TYPE(variable, name)                                                               \
  extern "C" [[gnu::visibility("default")]] const void* const variable[] __asm__("_ZTI" name); \
  const void* const variable[] = {k_functions_of_class_types + 2, name};
JITUNWIND_TYPE(k_type_of_row_source, "N9jitunwind9RowSourceE")
JITUNWIND_TYPE(k_type_of_module_finder, "N9jitunwind12ModuleFinderE")
#endif

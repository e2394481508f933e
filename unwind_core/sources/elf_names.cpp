// Names of static code from the symbols of its module.
#include "jitunwind/unwind_core/sources/sources.h"

#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {
namespace {

class ElfNameSource final : public NameSource {
 public:
  explicit constexpr ElfNameSource(NameReach reach) noexcept : reach_(reach) {}
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override {
    const Module* const module = lookup.module();
    return module ? lookup.space.modules.find_symbol(*module, lookup.at.lookup(), reach_, into, out) : false;
  }

 private:
  NameReach reach_;
};

constinit const ElfNameSource k_elf_names{NameReach::own};
constinit const ElfNameSource k_preceding_elf_names{NameReach::next};

}  // namespace

[[gnu::hot]] const NameSource& elf_name_source() noexcept { return k_elf_names; }
const NameSource& preceding_elf_name_source() noexcept { return k_preceding_elf_names; }

}  // namespace jitunwind

// Names of static code: the symbols of its module.
#include "unwind_core/sources/sources.h"

#include "unwind_core/address_space.h"

namespace jitunwind {
namespace {

class ElfNameSource final : public NameSource {
 public:
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override {
    const Module* const module = lookup.module();
    return module ? lookup.space.modules.find_symbol(*module, lookup.at.lookup(), into, out) : false;
  }
};

constinit const ElfNameSource k_elf_names;

}  // namespace

const NameSource& elf_name_source() noexcept { return k_elf_names; }

}  // namespace jitunwind

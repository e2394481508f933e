// Stubs of the procedure linkage table, recognised by their code: cfa = sp + CodePattern::cfa_offset; the other rules
// are those at the entry of any procedure. Stubs call nothing, so only an interrupted pc is in one.
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

const CodePattern* find_stub(Lookup& lookup) noexcept {
  if (lookup.at.is_return_address()) return nullptr;
  const Addr pc = lookup.at.value();
  const Module* const module = lookup.module();
  if (!module || !module->text.contains(pc)) return nullptr;
  return find_pattern(lookup.space.arch.plt_stubs, pc, lookup.space.memory, lookup.window);
}

class PltStubSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    const CodePattern* const stub = find_stub(lookup);
    if (!stub) return false;
    out = entry_row(lookup.space.arch);
    out.cfa = CfaRule::at(lookup.space.arch.sp, stub->cfa_offset);
    out.range = {lookup.at.value(), lookup.at.value() + 1};
    out.origin = RowOrigin::plt_stub;
    return true;
  }

  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override {
    return procedure_of(find_stub(lookup), lookup.at.value(), RowOrigin::plt_stub, out);
  }
};

constinit const PltStubSource k_plt_stub;

}  // namespace

[[gnu::hot]] const RowSource& plt_stub_source() noexcept { return k_plt_stub; }

}  // namespace jitunwind

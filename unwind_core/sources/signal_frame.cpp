// Signal trampolines by their code. The kernel returns a handler to one with SP at the frame that it pushed, which
// holds a ucontext_t with every register of the interrupted code:
//   caller.r = *(sp + sigframe_ucontext + RegisterInfo::ucontext of r), SP and pc included
//   cfa      = caller.sp
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

/// The address as it is: a trampoline is returned to at its first byte, which no call precedes.
const CodePattern* find_trampoline(const Lookup& lookup) noexcept {
  const AddressSpace& space = lookup.space;
  if (space.arch.sigframe_ucontext < 0) return nullptr;
  return find_pattern(space.arch.trampolines, lookup.at.value(), space.memory, lookup.window);
}

class SignalFrameSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    const CodePattern* const trampoline = find_trampoline(lookup);
    if (!trampoline) return false;
    const Arch& arch = lookup.space.arch;
    out = {};
    out.range = range_of(*trampoline, lookup.at.value());
    out.origin = RowOrigin::signal_frame;
    out.signal_frame = true;
    out.ra = arch.ra;
    for (const RegisterInfo& r : arch.registers) {
      if (r.ucontext < 0) continue;
      const std::int64_t offset = std::int64_t{arch.sigframe_ucontext} + r.ucontext;
      if (r.dwarf == arch.sp) out.cfa = CfaRule::deref(arch.sp, offset, 0);
      if (!out.set(r.dwarf, RegRule::at_reg(arch.sp, offset)))
        return Error{ErrorCode::row_too_wide, lookup.at.value(), "signal frame"};
    }
    return true;
  }

  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override {
    return procedure_of(find_trampoline(lookup), lookup.at.value(), RowOrigin::signal_frame, out);
  }
};

constinit const SignalFrameSource k_signal_frame;

}  // namespace

const RowSource& signal_frame_source() noexcept { return k_signal_frame; }

}  // namespace jitunwind

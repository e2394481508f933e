// A guess for code that nothing else knows, by the code itself:
//   from the pc on, as far as a return:   where on the stack the return address is
//   the call in front of that address:    which procedure was called
//   from that procedure's entry to the pc: where on the stack the return address is, and where registers are saved
// A call by a register or by memory says which by what that holds now. It is believed where the way out ends in a
// return: interpreters jump from piece to piece by a register, which leads to the one at the pc from an old return
// address on top of the stack, too. Where it holds something else by now it is the procedure by whose name the code at
// the pc is known, if that returns: what jumps away in its place may have been jumped to, and have no caller.
// Made only where both say the same: a frame that is left out, an old return address or a register that holds anything
// would have to be the same mistake twice.
#include <string_view>

#include "jitunwind/unwind_core/sources/guesses/call_target_p.h"
#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/guesses/entry_guess_p.h"
#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

using Base = StackPlace::Base;

/// As dynamic linkers and /proc/PID/maps call it.
bool is_kernels_object(const Module& module) noexcept {
  const std::string_view path = module.path;
  return path.starts_with("linux-gate.so") || path.starts_with("linux-vdso.so") || path == "[vdso]";
}

/// The frame that a lookup is about.
struct Frame {
  Addr sp = 0;
  std::optional<Addr> fp;

  std::optional<Addr> at(StackPlace place) const noexcept {
    if (place.base == Base::sp) return plus(sp, place);
    return place.base == Base::fp && fp ? plus(*fp, place) : std::nullopt;
  }

 private:
  static std::optional<Addr> plus(Addr base, StackPlace place) noexcept {
    return base + static_cast<Addr>(std::int64_t{place.offset});
  }
};

/// Where a procedure is entered SP is at the return address, which is what code from its entry on counts from.
class FollowedCode {
 public:
  FollowedCode(Lookup& lookup, Frame frame) noexcept : lookup_(lookup), arch_(lookup.space.arch), frame_(frame) {}

  Found find_row(FrameRow& out) noexcept {
    WayOut way;
    if (const auto slot = find_way_out(way))
      if (const Found found = find_entry(*slot, nullptr, way.returns != 0, out); !found || *found) return found;
    if (lookup_.at.is_return_address()) return false;
    return find_new_frame(out);
  }

 private:
  /// Where the return address is. Only the place is kept; what is there is looked at in any case.
  std::optional<Addr> find_way_out(WayOut& way) noexcept {
    UnknownCode* const memory = lookup_.space.unknown_code;
    if (memory && memory->find(lookup_.at, lookup_.unknown_version, way)) {
      if (way.known == WayOut::Known::nowhere) return std::nullopt;
      if (is_behind_call({way.base, way.offset})) return frame_.at({way.base, way.offset});
    }
    way = follow_out();
    if (memory) memory->keep(lookup_.at, lookup_.unknown_version, way);
    return frame_.at({way.base, way.offset});
  }
  WayOut follow_out() noexcept {
    CodeState state;
    CodeFlow flow(lookup_.space, lookup_.window, lookup_.at.value());
    WayOut way;
    const bool found = flow.reach_return([this](StackPlace place) { return is_behind_call(place); }, state);
    way.known = found ? WayOut::Known::slot : WayOut::Known::nowhere;
    if (found) way.base = state.sp.base, way.offset = state.sp.offset, way.returns = flow.returned() ? 1 : 0;
    return way;
  }
  /// From the procedure that was called by what returns to the word at `slot`. `live`: the pc may be new. `returns`:
  /// the code at the pc returns to there, so that the call may also be by a register, and its procedure the one whose
  /// name the code has.
  Found find_entry(Addr slot, const RegisterFile* live, bool returns, FrameRow& out) noexcept {
    const auto ra = word_at(slot);
    if (!ra || !is_code(lookup_.space, lookup_.window, CodeAddress::returned_to(*ra).lookup())) return false;
    const CallTargets called(lookup_, *ra, slot + static_cast<Addr>(arch_.entry_cfa));
    if (!returns && called.may_be_others()) return false;
    CodeState state;
    for (const Addr entry : called.all())
      if (leads_here(entry, live, slot, state)) return put_row(state, out);
    if (!returns || !called.may_be_others()) return false;
    const auto named = named_entry();
    return named && leads_here(*named, live, slot, state) ? put_row(state, out) : Found(false);
  }
  bool leads_here(Addr entry, const RegisterFile* live, Addr slot, CodeState& state) noexcept {
    CodeFlow from_entry(lookup_.space, lookup_.window, entry, live);
    return from_entry.reach(lookup_.at.value(), state) && says(state, slot);
  }
  /// Where the procedure begins that somebody told the name of. Symbols of modules are not asked: there are functions
  /// with several, and parts of functions with their own. The kernel's object has those of its functions alone, which C
  /// libraries call by pointers, and its code for i386 has call frame information for system calls only.
  std::optional<Addr> named_entry() noexcept {
    const Module* const module = lookup_.module();
    if (module && !is_kernels_object(*module)) return std::nullopt;
    ProcedureName name;
    const Found found = lookup_.space.find_name(lookup_, {}, name);
    return found && *found && name.start != 0 ? std::optional(name.start) : std::nullopt;
  }
  /// Where nothing has been pushed yet, what comes behind the pc does not matter: it may be no code at all, after a
  /// call through a bad pointer.
  Found find_new_frame(FrameRow& out) noexcept {
    const bool is_bad = !is_code(lookup_.space, lookup_.window, lookup_.at.value());
    const Found found = find_entry(frame_.sp, lookup_.registers, is_bad, out);
    if (found && *found && is_bad) out.origin = RowOrigin::bad_call;
    return found;
  }
  std::optional<Addr> word_at(Addr at) noexcept {
    const auto word = read_word(lookup_.space.memory, lookup_.window, at, arch_, "return address");
    return word ? std::optional(*word & arch_.address_mask) : std::nullopt;
  }
  /// What is below SP is nobody's frame.
  bool is_behind_call(StackPlace place) noexcept {
    const auto slot = frame_.at(place);
    if (!slot || *slot < frame_.sp || *slot % arch_.word_size != 0) return false;
    const auto ra = word_at(*slot);
    return ra && *ra != 0 && CodeBefore(*ra, lookup_.space.memory, lookup_.window).is_call(arch_);
  }
  /// Whether the return address is at `slot`, by all that is known.
  bool says(const CodeState& state, Addr slot) const noexcept {
    const bool by_sp = state.sp.base == Base::sp, by_fp = state.fp.base == Base::sp && frame_.fp;
    if (by_sp && frame_.sp - static_cast<Addr>(std::int64_t{state.sp.offset}) != slot) return false;
    if (by_fp && *frame_.fp - static_cast<Addr>(std::int64_t{state.fp.offset}) != slot) return false;
    return by_sp || by_fp;
  }
  Found put_row(const CodeState& state, FrameRow& out) const noexcept {
    const bool by_sp = state.sp.base == Base::sp;
    out = {};
    out.cfa = CfaRule::at(by_sp ? arch_.sp : arch_.fp, arch_.entry_cfa - (by_sp ? state.sp : state.fp).offset);
    out.ra = arch_.ra;
    out.origin = RowOrigin::followed_code;
    bool fits = out.set(arch_.ra, RegRule::at_cfa(arch_.entry_ra));
    for (RegNum reg = 0; reg < CodeState::k_registers; ++reg) {
      const std::int64_t below = std::int64_t{arch_.word_size} * state.saved[reg];
      if (below != 0)
        fits = fits && out.set(reg, RegRule::at_cfa(-below - arch_.entry_cfa));
      else if ((state.lost >> reg & 1) != 0)
        fits = fits && out.set(reg, RegRule::undefined());
    }
    if (!fits) return Error{ErrorCode::row_too_wide, lookup_.at.value(), "code that was followed"};
    return true;
  }

  Lookup& lookup_;
  const Arch& arch_;
  Frame frame_;
};

/// Where calls leave the return address in a register: of an interrupted procedure that has no frame, which it still is
/// if the code returns by it with SP as it is now, without another call. Such procedures of the kernel's object have no
/// call frame information on AArch64.
Found find_frameless(Lookup& lookup, FrameRow& out) noexcept {
  if (lookup.at.is_return_address()) return false;
  const auto ra = return_address_at_entry(lookup);
  if (const Found found = guess_entry_row(lookup, ra, RowOrigin::followed_code, out); !found || !*found) return found;
  // Control that comes from there is behind a call of its own.
  constexpr Addr k_near = 4096;
  const Addr pc = lookup.at.value();
  CodeState ignored;
  if (pc - *ra < k_near && CodeFlow(lookup.space, lookup.window, *ra).reach(pc, ignored)) return false;
  return CodeFlow(lookup.space, lookup.window, pc).reach_link_return();
}

class FollowedCodeSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    const Arch& arch = lookup.space.arch;
    if (!lookup.registers || !arch.read_instruction) return false;
    if (!arch.ra_in_memory) return find_frameless(lookup, out);
    const auto sp = lookup.registers->get(arch.column(arch.sp));
    if (!sp) return false;
    return FollowedCode(lookup, {*sp, lookup.registers->get(arch.column(arch.fp))}).find_row(out);
  }
};

constinit const FollowedCodeSource k_followed_code;

}  // namespace

const RowSource& followed_code_source() noexcept { return k_followed_code; }

}  // namespace jitunwind

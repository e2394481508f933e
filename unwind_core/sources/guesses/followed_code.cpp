// A guess for code that no other source knows, by following the code itself:
//   from the pc to a return:               the place of the return address: on the stack, or still in the link register
//   the call before that address:          the procedure that was called
//   from that procedure's entry to the pc: the place of the return address, and of saved registers
// A call by a register or by memory is read with the present value of these. It counts if the path out ends in a
// return: interpreters jump from piece to piece by a register, and that leads to the piece at the pc also from an old
// return address on top of the stack. If the register has another value by now, the procedure is the one whose name the
// code at the pc has, provided that it returns: code that jumps away instead may have been jumped to, and have no
// caller. The guess is made only if both paths agree. A skipped frame, an old return address or an unrelated register
// value would have to cause the same mistake twice. One path is enough if the instructions alone decide the flow of
// control.
#include <optional>
#include <string_view>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"
#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

/// The return address of an interrupted procedure that has pushed nothing since its call: *(cfa + entry_ra) if the
/// CPU's calls push it, else the link register. Empty: it is not known.
std::optional<Addr> return_address_at_entry(const Lookup& lookup) noexcept {
  const Arch& arch = lookup.space.arch;
  if (!lookup.registers) return std::nullopt;
  if (!arch.ra_in_memory) {
    const auto link = lookup.registers->get(arch.column(arch.ra));
    return link ? std::optional(*link & arch.address_mask) : std::nullopt;
  }
  const auto sp = lookup.registers->get(arch.column(arch.sp));
  if (!sp) return std::nullopt;
  const Addr slot = *sp + static_cast<Addr>(std::int64_t{arch.entry_cfa} + arch.entry_ra);
  const auto word = read_word(lookup.space.memory, lookup.window, slot, arch, "return address at entry");
  return word ? std::optional(*word & arch.address_mask) : std::nullopt;
}

/// The row of a procedure's first instruction, of that origin, if `ra` follows a call.
Found guess_entry_row(const Lookup& lookup, std::optional<Addr> ra, RowOrigin origin, FrameRow& out) noexcept {
  if (!ra || !is_after_call(lookup.space, lookup.window, *ra)) return false;
  out = entry_row(lookup.space.arch);
  out.origin = origin;
  return true;
}

/// Whether the call before `ra` has a known target, and the pc is not far after it. Precondition: ra != 0.
bool calls_into(const Lookup& lookup, Addr ra) noexcept {
  constexpr Addr k_leaf_size = 4096;
  const Arch& arch = lookup.space.arch;
  const CodeBefore code(ra, lookup.space.memory, lookup.window);
  const CodePattern* const call = code.find_call(arch);
  if (!call || call->displacement == 0) return false;
  if (!is_code(lookup.space, lookup.window, CodeAddress::returned_to(ra).lookup())) return false;
  const std::uint32_t field = ByteReader(code.last(call->displacement), arch.big_endian).u32();
  const Addr target = ra + static_cast<Addr>(std::int64_t{static_cast<std::int32_t>(field)});
  return lookup.at.value() - target < k_leaf_size;
}

// Two bold guesses for interrupted pcs without any information. Both assume that nothing has been pushed since the
// call, so that the row is that of a procedure's first instruction. The return address must follow a call.
//   bad_call: the pc is no code; a call through a bad pointer was made an instant ago.
//   leaf: the pc is code; procedures that call nothing need no unwind information, and most of them touch no stack.

class BadCallSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (lookup.guesses != Guesses::bold || lookup.at.is_return_address()) return false;
    if (is_code(lookup.space, lookup.window, lookup.at.value())) return false;
    return guess_entry_row(lookup, return_address_at_entry(lookup), RowOrigin::bad_call, out);
  }
};

class LeafSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (lookup.guesses != Guesses::bold || lookup.at.is_return_address()) return false;
    const auto ra = return_address_at_entry(lookup);
    if (!ra || *ra == 0) return false;
    // The top of the stack may be an old return address in a slot that is not written yet. A call to just above the pc
    // is evidence enough; any other counts only if no frame record contradicts it.
    if (!calls_into(lookup, *ra)) {
      const Found record = frame_pointer_source().find_row(lookup, out);
      if (!record || *record) return record;
    }
    return guess_entry_row(lookup, ra, RowOrigin::leaf, out);
  }
};

using Base = StackPlace::Base;

/// The name of the object for dynamic linkers and /proc/PID/maps.
bool is_kernels_object(const Module& module) noexcept {
  const std::string_view path = module.path;
  return path.starts_with("linux-gate.so") || path.starts_with("linux-vdso.so") || path == "[vdso]";
}

/// The frame of the lookup.
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

/// SP points at the return address at a procedure's entry, or the link register has it. Code from the entry on counts
/// from there, and returns with the same SP.
class FollowedCode {
 public:
  FollowedCode(Lookup& lookup, Frame frame, bool is_own) noexcept
      : lookup_(lookup), arch_(lookup.space.arch), frame_(frame), is_own_(is_own) {
    if (!arch_.ra_in_memory && !lookup.at.is_return_address())
      if (const auto link = lookup.registers->get(arch_.column(arch_.ra))) link_ = *link & arch_.address_mask;
  }

  Found find_row(FrameRow& out) noexcept {
    const bool has_called = lookup_.at.is_return_address();
    if (!has_called && is_emulated()) return find_new_frame(WayOut::Known::returns, out);
    if (!has_called && !is_code(lookup_.space, lookup_.window, lookup_.at.value())) return find_bad_call(out);
    WayOut way;
    if (const auto top = find_way_out(way)) {
      if (way.known == WayOut::Known::at_once) return put_way(way, out);
      const bool has_frame = arch_.ra_in_memory || way.below != 0 || *top != frame_.sp;
      if (!has_frame && way.loaded == 0 && way.returns()) {
        const Found found = find_frameless(way.key(), out);
        if (!found || *found) return found;
      }
      const Found found = find_entry({*top, way.below}, nullptr, way, out);
      if (found && *found) return keep_only(way.loaded, out);
      if (!found) return found;
    }
    // Code that is executable but not readable cannot be followed, like data.
    return has_called ? Found(false)
                      : find_new_frame(can_be_read() ? WayOut::Known::nowhere : WayOut::Known::returns, out);
  }

 private:
  /// SP at the entry, and the number of words from there down to the return address; 0: it is where calls leave it.
  struct Top {
    Addr sp = 0;
    std::uint16_t below = 0;
  };

  /// The SP at the code's return. Only the place is cached; its content is checked in any case.
  std::optional<Addr> find_way_out(WayOut& way) noexcept {
    const UnknownCode* const memory = lookup_.unknown;
    if (memory && memory->find(lookup_.at, lookup_.unknown_version, way)) {
      if (way.known != WayOut::Known::nowhere) {
        if (is_behind_call(way)) return frame_.at(way.sp());
      } else if (way.base == Base::unknown || word_of(way) == way.loaded) {
        return std::nullopt;
      }
    }
    way = follow_out();
    // An earlier path may be the right one from another stack.
    const bool can_be_kept = !rejected_ || (way.known == WayOut::Known::nowhere && !words_decide_);
    if (memory && can_be_kept) memory->keep(lookup_.at, lookup_.unknown_version, way);
    return way.known == WayOut::Known::nowhere ? std::nullopt : frame_.at(way.sp());
  }
  /// The path out of an interrupted procedure, on a CPU whose calls push, if the pc alone decides it: there is no call,
  /// which may not return, no jump that depends on registers, and no register to load. The code then returns to the
  /// address on the stack there, whatever its caller is.
  std::optional<WayOut> follow_out_at_once() noexcept {
    if (!arch_.ra_in_memory || lookup_.at.is_return_address()) return std::nullopt;
    CodeState state;
    CodeFlow flow(lookup_.space, lookup_.window, lookup_.at.value());
    WayOut way{.known = WayOut::Known::at_once};
    const auto leads_out = [&](const CodeState& at_end, bool returns) {
      way.offset = at_end.sp.offset;
      way.base = at_end.sp.base;
      if (!returns || at_end.changed != 0) return false;
      if (!is_behind_call(way)) return reject(way), false;
      return true;
    };
    return flow.reach_return_without_call(leads_out, state) ? std::optional(way) : std::nullopt;
  }
  WayOut follow_out() noexcept {
    rejected_.reset();
    words_decide_ = false;
    CodeState state;
    const auto at_once = follow_out_at_once();
    return at_once ? *at_once : follow_out(state);
  }
  WayOut follow_out(CodeState& state) noexcept {
    CodeFlow flow(lookup_.space, lookup_.window, lookup_.at.value());
    if (lookup_.at.is_return_address()) flow.start_behind_call();
    WayOut way, jump;
    // One path may jump to a part of another procedure, or not, while another path returns.
    const auto leads_out = [&](const CodeState& at_end, bool returns) {
      const auto below = words_below_top(at_end, returns);
      if (!below || (!returns && jump.known == WayOut::Known::jumps)) return false;
      WayOut& found = returns ? way : jump;
      found = {at_end.sp.offset, *below, at_end.sp.base, {}, at_end.loaded};
      if (!is_behind_call(found)) return reject(found), false;
      found.known = returns ? WayOut::that_returns(at_end.authenticated) : WayOut::Known::jumps;
      return returns;
    };
    if (flow.reach_return(leads_out, state)) return way;
    if (jump.known == WayOut::Known::jumps) return jump;
    // Bytes that are data now may be code at the next lookup.
    if (flow.met_data()) return {};
    return rejected_.value_or(WayOut{.known = WayOut::Known::nowhere});
  }
  /// Notes a path that would be right if another word were on the stack.
  void reject(WayOut way) noexcept {
    way.known = WayOut::Known::nowhere;
    way.loaded = word_of(way);
    words_decide_ |= rejected_ && !(rejected_->sp().is(way.base, way.offset) && rejected_->below == way.below);
    if (!words_decide_) rejected_ = way;
  }
  /// The word that decides whether a path is right; 0: there is none, or it is below SP.
  Addr word_of(const WayOut& way) noexcept { return return_address(way).value_or(0); }
  /// The place of the return address at the end. A jump before which it was not loaded may be one within the procedure.
  std::optional<std::uint16_t> words_below_top(const CodeState& at_end, bool returns) const noexcept {
    if (arch_.ra_in_memory) return std::uint16_t{0};
    const StackPlace from = at_end.link;
    if (from.base == Base::unknown) {
      const bool is_as_it_was = !at_end.has_lost(arch_.ra) && at_end.place_saved(arch_.ra) == 0;
      return is_as_it_was && returns ? std::optional(std::uint16_t{0}) : std::nullopt;
    }
    const std::int32_t bytes = at_end.sp.offset - from.offset, words = bytes / arch_.word_size;
    if (from.base != at_end.sp.base || bytes % arch_.word_size != 0 || words <= 0 || words > 0x7fff)
      return std::nullopt;
    return static_cast<std::uint16_t>(words);
  }
  /// Follows from the entry of the procedure whose call returns to the address at `top`. `live`: the pc may be new.
  /// `way`: the path out from the pc. If it returns, the call may also be by a register, and its procedure the one
  /// whose name the code has. Precondition: is_behind_call(top).
  Found find_entry(Top top, const RegisterFile* live, const WayOut& way, FrameRow& out) noexcept {
    const auto ra = return_address(top);
    if (!ra) return false;
    const CallTargets called = targets_of_call(*ra, top.sp + static_cast<Addr>(arch_.entry_cfa), way);
    if (!way.returns() && called.may_be_others()) return false;
    CodeState state;
    for (const Addr entry : called.all())
      if (leads_here(entry, live, top, state)) return put_row(state, out);
    if (!way.returns() || !called.may_be_others()) return false;
    const auto told = told_entry();
    return told && leads_here(*told, live, top, state) ? put_row(state, out) : Found(false);
  }
  /// Registers that the code loads before it returns have the caller's values then.
  [[gnu::noinline]] CallTargets targets_of_call(Addr ra, Addr sp, const WayOut& way) noexcept {
    if (way.loaded == 0 || !way.returns()) return {lookup_, *lookup_.registers, ra, sp};
    RegisterFile registers = *lookup_.registers;
    CodeState at_end;
    (void)follow_out(at_end);
    for (const RegisterInfo& reg : arch_.registers) {
      if (!is_followed(arch_, reg) || (at_end.taken >> place_of(reg.dwarf) & 1) == 0) continue;
      const std::int64_t below = CodeState::words_below(at_end.saved[place_of(reg.dwarf)]) * arch_.word_size;
      if (const auto value = word_at(frame_.sp - static_cast<Addr>(below))) registers.set(reg.column, *value);
    }
    return {lookup_, registers, ra, sp};
  }
  bool leads_here(Addr entry, const RegisterFile* live, Top top, CodeState& state) noexcept {
    CodeFlow from_entry(lookup_.space, lookup_.window, entry, live);
    return from_entry.reach(lookup_.at, state) && says(state, top);
  }
  /// The start of the procedure whose name was announced, or was announced and taken back. Symbols of modules are not
  /// used: some functions have several, and some parts of functions have their own. An exception is the kernel's
  /// object, which has symbols of its functions alone. C libraries call these by pointers, and its code for i386 has
  /// call frame information for system calls only.
  std::optional<Addr> told_entry() noexcept {
    if (is_emulated()) return lookup_.at.value();
    const Module* const module = lookup_.module();
    if (module && !is_kernels_object(*module)) return std::nullopt;
    ProcedureName name;
    const Found found = lookup_.space.find_name(lookup_, {}, name);
    if (found && *found && name.start != 0) return name.start;
    if (module) return std::nullopt;
    return is_own_ ? begin_of_taken_back(lookup_.at.lookup()) : std::nullopt;
  }
  /// The row before any push. `known`: whether the code returns there.
  Found find_new_frame(WayOut::Known known, FrameRow& out) noexcept {
    const Top top{frame_.sp, 0};
    return is_behind_call(top) ? find_entry(top, lookup_.registers, {.known = known}, out) : Found(false);
  }
  /// A call through a bad pointer: no path begins at a pc that is no code.
  Found find_bad_call(FrameRow& out) noexcept {
    const Found found = find_new_frame(WayOut::Known::returns, out);
    if (found && *found) out.origin = RowOrigin::bad_call;
    return found;
  }
  /// Row of a leaf that was interrupted before any push: the code returns through the link register, SP is unchanged,
  /// and no call inside this procedure has set the link register. If one had, a path without another call would lead
  /// from there to the pc. `key`: the key by which it authenticates the register. Such procedures of the kernel's
  /// object have no call frame information on AArch64.
  Found find_frameless(SigningKey key, FrameRow& out) noexcept {
    constexpr Addr k_near = 4096;
    const Found found = guess_entry_row(lookup_, link_, RowOrigin::followed_code, out);
    if (!found || !*found) return found;
    if (!put_signature(key, out)) return Error{ErrorCode::row_too_wide, lookup_.at.value(), "code that was followed"};
    const Addr pc = lookup_.at.value();
    return pc - *link_ >= k_near || !CodeFlow(lookup_.space, lookup_.window, *link_).reach_without_call(pc);
  }
  std::optional<Addr> word_at(Addr at) noexcept {
    const auto word = read_word(lookup_.space.memory, lookup_.window, at, arch_, "return address");
    return word ? std::optional(*word & arch_.address_mask) : std::nullopt;
  }
  /// Memory below SP belongs to no frame.
  std::optional<Addr> return_address(Top top) noexcept {
    const Addr slot = top.sp - Addr{top.below} * arch_.word_size;
    if (top.sp < frame_.sp || slot < frame_.sp || slot > top.sp || slot % arch_.word_size != 0) return std::nullopt;
    return top.below == 0 && !arch_.ra_in_memory ? link_ : word_at(slot);
  }
  /// The kernel's [vsyscall]: what can be read there, zeros in core files, is not what is done.
  bool is_emulated() const noexcept {
    return arch_.emulated_page != 0 && page_of(lookup_.at.value()) == arch_.emulated_page;
  }
  bool can_be_read() const noexcept {
    std::byte byte;
    return lookup_.space.memory.read(lookup_.at.value(), {&byte, 1}, lookup_.window) == 1;
  }
  bool is_behind_call(Top top) noexcept {
    const auto ra = return_address(top);
    return ra && is_after_call(lookup_.space, lookup_.window, *ra);
  }
  std::optional<Addr> return_address(const WayOut& way) noexcept {
    const auto top = frame_.at(way.sp());
    return top ? return_address(Top{*top, way.below}) : std::nullopt;
  }
  bool is_behind_call(const WayOut& way) noexcept {
    const auto ra = return_address(way);
    return ra && is_after_call(lookup_.space, lookup_.window, *ra);
  }
  /// Whether the return address is at `top`, by the known state.
  bool says(const CodeState& state, Top top) const noexcept {
    const bool by_sp = state.sp.base == Base::sp, by_fp = state.fp.base == Base::sp && frame_.fp;
    if (by_sp && frame_.sp - static_cast<Addr>(std::int64_t{state.sp.offset}) != top.sp) return false;
    if (by_fp && *frame_.fp - static_cast<Addr>(std::int64_t{state.fp.offset}) != top.sp) return false;
    if (!arch_.ra_in_memory && (state.place_saved(arch_.ra) != top.below || state.has_lost(arch_.ra))) return false;
    return (by_sp || by_fp) && state.authenticated == SigningKey::any;
  }
  /// The code from the pc to a return also tells which registers are on the stack: it loads them. gcc for this CPU may
  /// save each register apart from the others (-fshrink-wrap-separate). A single path may then have come to the pc from
  /// elsewhere, for example from a call that does not return. Registers on which the two paths disagree are unknown.
  Found keep_only(std::uint64_t loaded, FrameRow& out) const noexcept {
    if (arch_.ra_in_memory) return true;
    for (const RegisterInfo& reg : arch_.registers) {
      if (!is_followed(arch_, reg) || reg.dwarf == arch_.ra) continue;
      const bool is_saved = out.rule(reg.dwarf).kind == RegRule::Kind::at_cfa;
      if (is_saved == ((loaded >> place_of(reg.dwarf) & 1) != 0)) continue;
      if (!out.set(reg.dwarf, RegRule::undefined()))
        return Error{ErrorCode::row_too_wide, lookup_.at.value(), "code that was followed"};
    }
    return true;
  }
  Found put_way(const WayOut& way, FrameRow& out) const noexcept {
    out = entry_row(arch_);
    out.cfa = CfaRule::at(way.base == Base::sp ? arch_.sp : arch_.fp, arch_.entry_cfa + way.offset);
    out.origin = RowOrigin::followed_code;
    return true;
  }
  Found put_row(const CodeState& state, FrameRow& out) const noexcept {
    const bool by_sp = state.sp.base == Base::sp;
    out = {};
    out.cfa = CfaRule::at(by_sp ? arch_.sp : arch_.fp, arch_.entry_cfa - (by_sp ? state.sp : state.fp).offset);
    out.ra = arch_.ra;
    out.origin = RowOrigin::followed_code;
    bool fits = !arch_.ra_in_memory || out.set(arch_.ra, RegRule::at_cfa(arch_.entry_ra));
    for (const RegisterInfo& reg : arch_.registers) {
      if (!is_followed(arch_, reg)) continue;
      const std::int16_t place = state.place_saved(reg.dwarf);
      if (place != 0)
        fits = fits &&
               out.set(reg.dwarf, RegRule::at_cfa(-arch_.word_size * CodeState::words_below(place) - arch_.entry_cfa));
      else if (state.has_lost(reg.dwarf))
        fits = fits && out.set(reg.dwarf, RegRule::undefined());
    }
    fits = fits && put_signature(state.key, out);
    if (!fits) return Error{ErrorCode::row_too_wide, lookup_.at.value(), "code that was followed"};
    return true;
  }

  /// Sets the signature of the link register; any: it has none.
  bool put_signature(SigningKey key, FrameRow& out) const noexcept {
    out.signing_key = key;
    return key == SigningKey::any || out.set(arch_.sign_state, RegRule::constant(1));
  }

  Lookup& lookup_;
  const Arch& arch_;
  Frame frame_;
  bool is_own_;                       // code of this process
  std::optional<Addr> link_{};        // the return address in the link register, if it may be there
  std::optional<WayOut> rejected_{};  // a path, last out, that led to no return address
  bool words_decide_ = false;         // there were others, which depend on other words
};

class FollowedCodeSource final : public RowSource {
 public:
  explicit constexpr FollowedCodeSource(bool is_own) noexcept : is_own_(is_own) {}
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    const Arch& arch = lookup.space.arch;
    if (!lookup.registers || !arch.read_instruction) return false;
    const auto sp = lookup.registers->get(arch.column(arch.sp));
    if (!sp) return false;
    return FollowedCode(lookup, {*sp, lookup.registers->get(arch.column(arch.fp))}, is_own_).find_row(out);
  }

 private:
  bool is_own_;
};

constinit const BadCallSource k_bad_call;
constinit const LeafSource k_leaf;
constinit const FollowedCodeSource k_followed_code(false);
constinit const FollowedCodeSource k_followed_own_code(true);

}  // namespace

[[gnu::hot]] const RowSource& bad_call_source() noexcept { return k_bad_call; }
[[gnu::hot]] const RowSource& leaf_source() noexcept { return k_leaf; }
const RowSource& followed_code_source() noexcept { return k_followed_code; }
[[gnu::hot]] const RowSource& followed_own_code_source() noexcept { return k_followed_own_code; }

}  // namespace jitunwind

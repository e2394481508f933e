// A builder for descriptions of how a procedure builds and releases its frame. Two levels mix freely:
//
//   idioms: real instructions, each with the bytes it occupies in the procedure
//
//     auto add = x86_64::describe("add")
//                    .push({0, 1}, rbp)
//                    .set_frame_pointer({1, 4}, rbp)
//                    .push({4, 5}, rbx)
//                    .deallocate({-4, -3}, 8)              // negative: counted from the procedure's end
//                    .pop({-3, -2})
//                    .build();
//
//   directives: operations of the dynamic unwind information (docs/directives.md), by their names and `when`
//
//     auto add = x86_64::describe("add").region(7).add(0, rsp, -8).spill_sp_rel(0, rbp, 0)...
//                    .region(-5).add(1, rsp, +8)...build();
//
// Frames that neither level can express are given as rows: .row_at(0x12, "cfa=[rbp-8] rbx=[cfa-24] ra=[cfa-8]").
//
// x86_64::Marks has the same functions for code that is like no other: register_code() registers what they record as it
// is, without build().
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "jitunwind/builders/cpu_register.h"
#include "jitunwind/builders/draft/mark_recorder.h"
#include "jitunwind/builders/draft/procedure_draft.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A stack probe loop as compilers emit it for large frames:
///   lea r11,[rsp-65536];  again: sub rsp,4096; ...; cmp rsp,r11; jne again
struct ProbeLoop {
  Instruction bound;       ///< computes the final SP into a scratch register
  Instruction first_step;  ///< first instruction of the loop that moves SP
  Instruction back;        ///< the jump that closes the loop
  std::int64_t bytes;      ///< distance by which the loop lowers SP
};

/// x86_64::describe() or aarch64::describe() makes a builder. Every function returns the builder and only records;
/// build() reports the mistakes. build() may be called more than once and leaves the builder usable. Copies are
/// independent, so that several descriptions can share a beginning. Allocates; one thread at a time.
///
/// An instruction takes effect after its last byte, so that rows are right at every instruction. Offsets from SP and
/// frame pointer are those after the instruction. A register that no idiom names holds its caller's value. Reloads
/// (pop, ldp, ldr) need no idiom of their own if their slot is released by the same or a later instruction.
///
/// `Recorder` is MarkRecorder for Marks, which register_code() takes as they are; they have no build(). They lack what
/// an entry state and directives of one region cannot express: region(), rows, call sites, handled_by(), op().
template <class Cpu, class Recorder = ProcedureDraft>
class ProcedureBuilder {
  static constexpr bool k_builds = std::is_same_v<Recorder, ProcedureDraft>;
  static constexpr bool k_any_cpu = !requires { Cpu::arch(); };

 public:
  using Reg = CpuRegister<Cpu>;

  explicit ProcedureBuilder(std::string_view name = {}) requires(k_builds) : recorder_(Cpu::arch(), name) {}
  ProcedureBuilder() requires(!k_builds) : recorder_(Cpu::arch()) {}
  /// Makes a builder for a CPU that is chosen at run time; `Cpu` has no table then.
  ProcedureBuilder(const Arch& arch, std::string_view name) requires(k_builds&& k_any_cpu) : recorder_(arch, name) {}
  explicit ProcedureBuilder(const Arch& arch) requires(!k_builds && k_any_cpu) : recorder_(arch) {}

  // The procedure as a whole.

  /// Sets the exact size of the procedure. Idioms may then lie anywhere, and register_code() accepts this size only. A
  /// procedure without it places the code after the body from the end, by negative offsets or by a negative region.
  ProcedureBuilder& size(std::uint64_t bytes) { return recorder_.set_size(bytes), *this; }
  /// Address of the personality routine, of type _Unwind_Personality_Fn.
  ProcedureBuilder& personality(Addr handler) { return recorder_.set_personality(handler), *this; }
  /// Address of language-specific data in place of a table made of call_site(); Code::lsda overrides it.
  ProcedureBuilder& lsda(Addr address) { return recorder_.set_lsda(address), *this; }
  /// Value of the global pointer, on CPUs that have one.
  ProcedureBuilder& gp(Addr value) { return recorder_.set_gp(value), *this; }
  /// Declares an end with the frame in place, in a jump or a call that does not return; else build() refuses it.
  ProcedureBuilder& ends_without_return() { return recorder_.set_ends_without_return(), *this; }

  // Idioms that build the frame.

  /// push reg, saving the caller's value of reg. push(at) is for any other value: an argument, a scratch register, a
  /// register that was saved before. A push of SP saves no register: it stores SP before the push.
  [[gnu::always_inline]] ProcedureBuilder& push(Instruction at, Reg reg) requires(Cpu::k_has_push) {
    if (reg.dwarf() == arch().sp) return instruction(idiom("push", {reg.dwarf()}), at, {add_sp(-word())});
    return instruction(idiom("push", {reg.dwarf()}), at, {add_sp(-word()), Directive::spill_sp_rel(reg.dwarf(), 0)});
  }
  ProcedureBuilder& push(Instruction at) requires(Cpu::k_has_push) {
    return instruction(idiom("push"), at, {add_sp(-word())});
  }
  /// enter bytes,0
  ProcedureBuilder& enter(Instruction at, std::int64_t bytes) requires(Cpu::k_has_push) {
    const RegNum fp = arch().fp;
    return instruction(idiom("enter", {}, bytes), at,
                       {add_sp(minus(-word(), bytes)), Directive::spill_sp_rel(fp, bytes),
                        Directive::save_reg(arch().sp, fp), Directive::add(fp, bytes)});
  }
  /// sub sp,bytes
  ProcedureBuilder& allocate(Instruction at, std::int64_t bytes) {
    return instruction(idiom("allocate", {}, bytes), at, {add_sp(minus(0, bytes))});
  }

  /// reg := SP + above_sp; the frame is found through reg from now on: mov rbp,rsp; lea rbp,[rsp+n]; add x29,sp,#n. A
  /// preserved register must have been saved before.
  ProcedureBuilder& set_frame_pointer(Instruction at, Reg reg, std::int64_t above_sp = 0) {
    const Directive set = Directive::save_reg(arch().sp, reg.dwarf());
    if (above_sp == 0) return instruction(idiom("set_frame_pointer", {reg.dwarf()}, above_sp), at, {set});
    return instruction(idiom("set_frame_pointer", {reg.dwarf()}, above_sp), at,
                       {set, Directive::add(reg.dwarf(), above_sp)});
  }
  /// reg := reg + bytes while reg is the frame pointer.
  ProcedureBuilder& move_frame_pointer(Instruction at, Reg reg, std::int64_t bytes) {
    return instruction(idiom("move_frame_pointer", {reg.dwarf()}, bytes), at, {Directive::add(reg.dwarf(), bytes)});
  }

  /// Saves the caller's value of reg at [SP + offset]; a negative offset lies in the red zone. The slot of a vector
  /// register holds its preserved part.
  ProcedureBuilder& save_at_sp(Instruction at, Reg reg, std::int64_t offset) {
    return instruction(idiom("save_at_sp", {reg.dwarf()}, offset), at, {Directive::spill_sp_rel(reg.dwarf(), offset)});
  }
  /// Saves the caller's value of reg at [frame pointer + offset].
  ProcedureBuilder& save_at_fp(Instruction at, Reg reg, std::int64_t offset) {
    return instruction(idiom("save_at_fp", {reg.dwarf()}, offset), at, {Directive::spill_fp_rel(reg.dwarf(), offset)});
  }
  /// mov to, reg: register `to` holds the caller's value of reg from now on.
  ProcedureBuilder& move_to(Instruction at, Reg reg, Reg to) {
    return instruction(idiom("move_to", {reg.dwarf(), to.dwarf()}), at, {Directive::save_reg(reg.dwarf(), to.dwarf())});
  }

  /// stp first,second,[sp,#offset]
  ProcedureBuilder& store_pair(Instruction at, Reg first, Reg second, std::int64_t offset) requires(Cpu::k_has_pairs) {
    return instruction(idiom("store_pair", {first.dwarf(), second.dwarf()}, offset), at,
                       {Directive::spill_sp_rel(first.dwarf(), offset),
                        Directive::spill_sp_rel(second.dwarf(), minus(offset, -word()))});
  }
  /// stp first,second,[sp,#moved]!  with moved < 0
  ProcedureBuilder& store_pair_pre(Instruction at, Reg first, Reg second,
                                   std::int64_t moved) requires(Cpu::k_has_pairs) {
    return instruction(
        idiom("store_pair_pre", {first.dwarf(), second.dwarf()}, moved), at,
        {add_sp(moved), Directive::spill_sp_rel(first.dwarf(), 0), Directive::spill_sp_rel(second.dwarf(), word())});
  }
  /// str reg,[sp,#moved]!  with moved < 0
  ProcedureBuilder& store_pre(Instruction at, Reg reg, std::int64_t moved) requires(Cpu::k_has_pairs) {
    return instruction(idiom("store_pre", {reg.dwarf()}, moved), at,
                       {add_sp(moved), Directive::spill_sp_rel(reg.dwarf(), 0)});
  }
  /// paciasp, pacibsp: the return address is signed from now on.
  ProcedureBuilder& sign_return_address(Instruction at) requires(Cpu::k_signs_return_address) {
    return instruction(idiom("sign_return_address"), at, {Directive::add(arch().sign_state, 1)});
  }

  // Idioms that move SP by an amount unknown to the generator.

  /// and sp,-alignment. The frame must be found through a frame pointer or a saved SP from now on.
  ProcedureBuilder& realign(Instruction at) { return instruction(idiom("realign"), at, {add_sp(k_unknown_distance)}); }
  /// sub sp,reg: allocates memory of variable size. The frame must be found as after realign().
  ProcedureBuilder& allocate_variable(Instruction at) {
    return instruction(idiom("allocate_variable"), at, {add_sp(k_unknown_distance)});
  }
  /// mov [sp+offset],reg, where reg is the frame pointer: this slot replaces it, and reg is free for other use.
  ProcedureBuilder& store_sp(Instruction at, std::int64_t offset) {
    return instruction(idiom("store_sp", {}, offset), at, {Directive::spill_sp_rel(arch().sp, offset)});
  }
  /// mov sp,[sp+offset]: reloads SP from the slot of store_sp().
  ProcedureBuilder& reload_sp(Instruction at) {
    return instruction(idiom("reload_sp"), at, {Directive::save_reg(arch().sp, arch().sp)});
  }
  /// The loop moves SP in steps; `scratch` holds the final value meanwhile.
  ProcedureBuilder& probe_loop(const ProbeLoop& loop, Reg scratch) {
    const RegNum sp = arch().sp;
    set_frame_pointer(loop.bound, scratch, minus(0, loop.bytes));
    instruction(idiom("probe_loop"), loop.first_step, {add_sp(k_unknown_distance)});
    return instruction(idiom("probe_loop"), loop.back, {Directive::save_reg(scratch.dwarf(), sp)});
  }

  // Idioms that release the frame.

  /// pop into any register. A preserved register that was saved in the slot holds its caller's value again.
  ProcedureBuilder& pop(Instruction at) requires(Cpu::k_has_push) {
    return instruction(idiom("pop"), at, {add_sp(word())});
  }
  [[gnu::always_inline]] ProcedureBuilder& pop(Instruction at, Reg reg) requires(Cpu::k_has_push) {
    return instruction(idiom("pop", {reg.dwarf()}), at, {add_sp(word())});
  }
  /// add sp,bytes
  ProcedureBuilder& deallocate(Instruction at, std::int64_t bytes) {
    return instruction(idiom("deallocate", {}, bytes), at, {add_sp(bytes)});
  }
  /// SP := fp + offset, where fp is the frame pointer: mov rsp,rbp; lea rsp,[rbp-8]; sub sp,x29,#16.
  ProcedureBuilder& restore_sp(Instruction at, Reg fp, std::int64_t offset = 0) {
    const Directive restore = Directive::save_reg(fp.dwarf(), arch().sp);
    if (offset == 0) return instruction(idiom("restore_sp", {fp.dwarf()}, offset), at, {restore});
    return instruction(idiom("restore_sp", {fp.dwarf()}, offset), at, {restore, add_sp(offset)});
  }
  /// leave
  ProcedureBuilder& leave(Instruction at) requires(Cpu::k_has_push) {
    return instruction(idiom("leave"), at, {Directive::save_reg(arch().fp, arch().sp), add_sp(word())});
  }
  /// mov rbp,[rsp+n] before add rsp,m: reg holds its caller's value again, although its slot is not released yet.
  ProcedureBuilder& reload(Instruction at, Reg reg) {
    return instruction(idiom("reload", {reg.dwarf()}), at, {Directive::save_reg(reg.dwarf(), reg.dwarf())});
  }
  /// ldp first,second,[sp,#n] whose slots are not released yet
  ProcedureBuilder& reload_pair(Instruction at, Reg first, Reg second) requires(Cpu::k_has_pairs) {
    return instruction(
        idiom("reload_pair", {first.dwarf(), second.dwarf()}), at,
        {Directive::save_reg(first.dwarf(), first.dwarf()), Directive::save_reg(second.dwarf(), second.dwarf())});
  }
  /// ldp first,second,[sp],#moved  with moved > 0
  ProcedureBuilder& load_pair_post(Instruction at, [[maybe_unused]] Reg first, [[maybe_unused]] Reg second,
                                   std::int64_t moved) requires(Cpu::k_has_pairs) {
    return instruction(idiom("load_pair_post", {first.dwarf(), second.dwarf()}, moved), at, {add_sp(moved)});
  }
  /// ldr reg,[sp],#moved  with moved > 0
  ProcedureBuilder& load_post(Instruction at, [[maybe_unused]] Reg reg, std::int64_t moved) requires(Cpu::k_has_pairs) {
    return instruction(idiom("load_post", {reg.dwarf()}, moved), at, {add_sp(moved)});
  }
  /// autiasp, autibsp: the return address is plain again.
  ProcedureBuilder& authenticate_return_address(Instruction at) requires(Cpu::k_signs_return_address) {
    return instruction(idiom("authenticate_return_address"), at, {Directive::add(arch().sign_state, 1)});
  }
  /// pop to, where the slot holds the return address: register `to` holds it from now on.
  ProcedureBuilder& pop_return_address(Instruction at, Reg to) requires(Cpu::k_has_push) {
    return instruction(idiom("pop_return_address", {to.dwarf()}), at,
                       {Directive::save_reg(arch().ra, to.dwarf()), add_sp(word())});
  }

  /// An early return in the middle of the procedure. remember() marks the state of the body; the epilogue follows;
  /// restore() names the instruction that leaves (ret, a tail jump). Code after it has the state remembered last. One
  /// remember() serves any number of early returns.
  ProcedureBuilder& remember() { return recorder_.remember(), *this; }
  ProcedureBuilder& restore(Instruction leaving) { return recorder_.restore(leaving), *this; }

  // Idioms for calls.

  /// call: changes nothing, but lets build() check that a walk can leave the frame during the call (e_lr).
  ProcedureBuilder& call(Instruction at) { return recorder_.add_call(at), *this; }
  /// call of a procedure that pops `bytes` of arguments when it returns. SP moves after the call only.
  ProcedureBuilder& callee_pops(Instruction call, std::int64_t bytes) {
    return instruction(idiom("callee_pops", {}, bytes), call, {add_sp(bytes)});
  }

  // Exceptions that pass calls of the procedure. A procedure without any of these lets them pass and runs no code.

  /// An exception that leaves a call in these bytes continues at code offset `landing_pad`. The reasons follow:
  /// catches(), catches_all(), allows(), cleans_up(); the first that fits counts. A site that has no reason is a
  /// cleanup, as by cleans_up(). Exceptions pass calls that are in no call site.
  ///
  /// The frame at the landing pad is the frame during the call, SP and preserved registers included. rax (x0) holds the
  /// _Unwind_Exception*, rdx (x1) the selector of the reason. The C++ personality routine reads the table unless
  /// personality() names another. Sites may come in any order, and must not overlap.
  ProcedureBuilder& call_site(Instruction calls, std::int64_t landing_pad) requires(k_builds) {
    return recorder_.call_site(calls, landing_pad), *this;
  }
  /// Lands to catch exceptions of this type, or of a type derived from it. The selector is selector(type). The code
  /// calls __cxa_begin_catch(rax), and later __cxa_end_catch(). Null is an error.
  ProcedureBuilder& catches(const std::type_info& type) requires(k_builds) { return recorder_.catches(&type), *this; }
  ProcedureBuilder& catches(const std::type_info* type) requires(k_builds) { return recorder_.catches(type), *this; }
  /// Lands to catch everything: foreign exceptions too, and the forced unwinding of pthread_cancel() and
  /// pthread_exit(), which must be thrown again. The selector is selector(nullptr).
  ProcedureBuilder& catches_all() requires(k_builds) { return recorder_.catches_all(), *this; }
  /// An exception specification: lands, with a negative selector, for exceptions of other types than these, to call
  /// __cxa_call_unexpected(rax). An empty list lands for every exception.
  ProcedureBuilder& allows(std::initializer_list<const std::type_info*> types) requires(k_builds) {
    return recorder_.allows({types.begin(), types.size()}), *this;
  }
  ProcedureBuilder& allows(std::span<const std::type_info* const> types) requires(k_builds) {
    return recorder_.allows(types), *this;
  }
  /// Lands with selector 0 for exceptions that a frame above catches, to run code and call _Unwind_Resume(rax).
  ProcedureBuilder& cleans_up() requires(k_builds) { return recorder_.cleans_up(), *this; }
  /// An exception that leaves a call in these bytes ends in std::terminate(), as in a noexcept function.
  ProcedureBuilder& terminates(Instruction calls) requires(k_builds) { return recorder_.terminates(calls), *this; }
  /// The value of rdx at a landing pad for this type, null for catches_all(): 1, 2, ... in the order in which types are
  /// first named, this call included.
  int selector(const std::type_info& type) requires(k_builds) { return recorder_.selector(&type); }
  int selector(std::nullptr_t) requires(k_builds) { return recorder_.selector(nullptr); }

  /// Sets a handler that decides what exceptions do to each frame of the procedure, in place of call sites. The
  /// description and every procedure registered with it keep the handler. An empty handler is an error.
  ProcedureBuilder& handled_by(FrameHandler handler) requires(k_builds) {
    return recorder_.set_frame_handler(std::move(handler)), *this;
  }

  // Frames built elsewhere.

  /// The frame at the entry of this code: a cold part, a second entry point, an on-stack replacement. `sp_distance` is
  /// CFA - SP where it is known and the row does not contain it. The row is written as empty regions of directives,
  /// which are read back and compared. Rows that directives cannot express are refused: use row_at(0, row). Marks have
  /// an entry state in front of everything else.
  ProcedureBuilder& entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance = {}) {
    return recorder_.entry_state(row, sp_distance), *this;
  }
  ProcedureBuilder& entry_state(std::string_view row, std::optional<std::int64_t> sp_distance = {}) {
    return recorder_.entry_state(row, sp_distance), *this;
  }

  /// The row from this code offset on (negative: from the end). It holds up to the next given row, or to the next
  /// instruction after which the other directives and idioms change the row. Any row is allowed: the procedure is
  /// registered as call frame information instead of directives. Expressions are copied.
  ProcedureBuilder& row_at(std::int64_t offset, const FrameRow& row) requires(k_builds) {
    return recorder_.row_at(offset, row), *this;
  }
  ProcedureBuilder& row_at(std::int64_t offset, std::string_view row) requires(k_builds) {
    return recorder_.row_at(offset, row), *this;
  }

  // Directives. `when` counts instruction units (bytes on x86-64, instructions on AArch64) from the start of the
  // region. The directive takes effect after the instruction with this unit; a negative one, at the region's start.

  /// Begins the next region, of so many units. 0 is an empty region, whose directives take effect at once; a negative
  /// count is the last units of the procedure. A procedure without region() is one region.
  ProcedureBuilder& region(std::int32_t insn_count) requires(k_builds) {
    return recorder_.open_region(insn_count), *this;
  }

  /// The caller's `reg` is in another register, or at an offset from SP or the frame pointer, from `when` on.
  ProcedureBuilder& save_reg(std::int32_t when, Reg reg, Reg in) {
    return directive(when, Directive::save_reg(reg.dwarf(), in.dwarf()));
  }
  ProcedureBuilder& spill_sp_rel(std::int32_t when, Reg reg, std::int64_t offset) {
    return directive(when, Directive::spill_sp_rel(reg.dwarf(), offset));
  }
  ProcedureBuilder& spill_fp_rel(std::int32_t when, Reg reg, std::int64_t offset) {
    return directive(when, Directive::spill_fp_rel(reg.dwarf(), offset));
  }
  /// k_unknown_distance stands for an amount that is not known.
  ProcedureBuilder& add(std::int32_t when, Reg reg, std::int64_t value) {
    return directive(when, Directive::add(reg.dwarf(), value));
  }
  ProcedureBuilder& pop_frames(std::int32_t when, std::int64_t count) {
    return directive(when, Directive::pop_frames(count));
  }
  /// The overload without `when` (-1) labels the state after the preceding directives of this region.
  ProcedureBuilder& label_state(unw_word_t label) { return label_state(-1, label); }
  ProcedureBuilder& label_state(std::int32_t when, unw_word_t label) {
    return directive(when, Directive::label_state(label));
  }
  /// The overload without `when` (-1) takes effect at the region's start.
  ProcedureBuilder& copy_state(unw_word_t label) { return copy_state(-1, label); }
  ProcedureBuilder& copy_state(std::int32_t when, unw_word_t label) {
    return directive(when, Directive::copy_state(label));
  }
  /// The procedure unwinds like the code at `address`, registered or with unwind information. Alone in its region.
  ProcedureBuilder& alias(Addr address) { return alias(-1, address); }
  ProcedureBuilder& alias(std::int32_t when, Addr address) { return directive(when, Directive::alias(address)); }
  ProcedureBuilder& stop() { return directive(-1, Directive::stop()); }
  /// Any of these, for generators that choose the directive at run time.
  ProcedureBuilder& directive(std::int32_t when, const DraftDirective& directive) {
    return recorder_.directive(when, directive), *this;
  }
  /// Any directive unchanged, with registers by libunwind number.
  ProcedureBuilder& op(const unw_dyn_op_t& raw) requires(k_builds) { return recorder_.raw(raw), *this; }

  // The result.

  /// Chooses the format, shares the frame shape, and checks everything that docs/directives.md "Validation" lists.
  Result<Description, BuildError> build() const requires(k_builds) { return recorder_.build(); }

  /// Returns the directives that register_code() registers.
  Recorder& recorder() noexcept requires(!k_builds) { return recorder_; }

 private:
  using Directive = DraftDirective;

  const Arch& arch() const noexcept {
    if constexpr (requires { Cpu::arch(); })
      return Cpu::arch();
    else
      return recorder_.arch();
  }
  std::int64_t word() const noexcept { return arch().word_size; }
  /// Wraps around on overflow; build() refuses such numbers.
  static std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
  Directive add_sp(std::int64_t value) const noexcept { return Directive::add(arch().sp, value); }

  static Idiom idiom(const char* name, std::initializer_list<RegNum> regs = {},
                     std::optional<std::int64_t> number = {}) {
    return {name, regs, number};
  }
  [[gnu::always_inline]] ProcedureBuilder& instruction(const Idiom& idiom, Instruction at,  // a call takes longer
                                                       std::initializer_list<Directive> directives) {
    return recorder_.instruction(idiom, at, directives), *this;
  }
  Recorder recorder_;
};

}  // namespace jitunwind
#pragma GCC visibility pop

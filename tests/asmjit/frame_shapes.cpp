#include "tests/asmjit/frame_shapes.h"

#include <algorithm>
#include <stdexcept>

#include "jitunwind/adapters/asmjit/instruction_effects_p.h"
#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

namespace v = asmjit_version;
using asmjit::x86::Emitter;

constexpr std::uint32_t k_rbx = 1u << 3, k_rbp = 1u << 5, k_rsi = 1u << 6, k_rdi = 1u << 7;
constexpr std::uint32_t k_sysv = k_rbx | k_rbp | 0xf000;
constexpr std::uint32_t k_windows = k_sysv | k_rsi | k_rdi;
constexpr std::uint32_t k_sp_id = 4, k_bp_id = 5;

extern "C" {
[[gnu::noinline]] void frame_shapes_helper() { asm volatile(""); }
[[gnu::noinline, gnu::ms_abi]] void frame_shapes_helper_ms() { asm volatile(""); }
}

void check(asmjit::Error error, const char* what) {
  if (error != asmjit::kErrorOk) throw std::runtime_error(what);
}

bool preserves_like_windows(CallConvId id) { return id == CallConvId::kX64Windows || id == CallConvId::kVectorCall; }
bool is_light(CallConvId id) {
  return id == CallConvId::kLightCall2 || id == CallConvId::kLightCall3 || id == CallConvId::kLightCall4;
}

// Lists of wishes. Each covers one corner of FuncFrame completely, with a few values of everything else.

using Wishes = std::vector<FrameWish>;

/// Every set of saved registers.
void add_register_sets(Wishes& out) {
  for (std::uint32_t subset = 0; subset < 64; ++subset) {
    const std::uint32_t dirty = (subset & 1 ? k_rbx : 0) | (subset & 2 ? k_rbp : 0) | (subset & 0x3c) << 10;
    for (const bool fp : {false, true})
      for (const std::uint32_t local : {0u, 24u})
        out.push_back({.dirty = dirty, .frame_pointer = fp, .local_size = local});
  }
}

/// Every combination of alignment, frame pointer and sizes.
void add_sizes(Wishes& out) {
  for (const std::uint32_t alignment : {0u, 16u, 32u, 64u, 128u})
    for (const bool fp : {false, true})
      for (const std::uint32_t local : {0u, 1u, 8u, 40u, 200u, 4104u, 70000u})
        for (const bool calls : {false, true})
          for (const std::uint32_t dirty : {0u, k_rbx, k_rbp, k_sysv})
            out.push_back({.dirty = dirty,
                           .frame_pointer = fp,
                           .local_size = local,
                           .alignment = alignment,
                           .call_stack = calls ? 32u : 0u,
                           .calls = calls});
}

/// The register that the prologue keeps the old SP or the address of stack arguments in.
void add_argument_registers(Wishes& out) {
  for (const std::uint32_t reg : {0u, 3u, 5u, 10u, 12u})
    for (const bool fp : {false, true})
      for (const std::uint32_t alignment : {0u, 64u})
        for (const std::uint32_t dirty : {0u, k_rbx, k_sysv})
          for (const bool calls : {false, true})
            out.push_back({.dirty = dirty,
                           .frame_pointer = fp,
                           .local_size = 48,
                           .alignment = alignment,
                           .calls = calls,
                           .argument_register = reg});
}

/// Conventions that preserve vector registers.
void add_vector_saves(Wishes& out) {
  for (const CallConvId id : {CallConvId::kX64Windows, CallConvId::kVectorCall})
    for (const std::uint32_t vectors : {0u, 1u << 6, 0xffc0u})
      for (const bool avx : {false, true})
        for (const std::uint32_t alignment : {0u, 32u, 64u})
          for (const bool fp : {false, true})
            for (const std::uint32_t dirty : {0u, k_rsi | k_rdi, k_windows})
              for (const bool calls : {false, true})
                out.push_back({.convention = id,
                               .dirty = dirty,
                               .dirty_vectors = vectors,
                               .frame_pointer = fp,
                               .local_size = 24,
                               .alignment = alignment,
                               .call_stack = calls ? 32u : 0u,
                               .calls = calls,
                               .avx = avx});
}

void add_light_calls(Wishes& out) {
  for (const CallConvId id : {CallConvId::kLightCall2, CallConvId::kLightCall3, CallConvId::kLightCall4})
    for (const std::uint32_t dirty : {0u, 0x0f4eu, 0xffefu})
      for (const std::uint32_t vectors : {0u, 0xfff0u})
        for (const bool fp : {false, true})
          for (const std::uint32_t alignment : {0u, 64u})
            out.push_back({.convention = id,
                           .dirty = dirty,
                           .dirty_vectors = vectors,
                           .frame_pointer = fp,
                           .local_size = 8,
                           .alignment = alignment});
}

void add_returns_and_cleanups(Wishes& out) {
  for (const std::uint32_t popped : {8u, 16u, 40u})
    for (const bool fp : {false, true})
      for (const std::uint32_t alignment : {0u, 64u})
        for (const std::uint32_t dirty : {0u, k_rbx | k_rbp, k_sysv})
          out.push_back(
              {.dirty = dirty, .frame_pointer = fp, .local_size = 16, .alignment = alignment, .popped = popped});
  for (const bool avx : {false, true})
    for (const bool mmx : {false, true})
      for (const bool branch : {false, true})
        for (const bool masks : {false, true})
          for (const bool fp : {false, true})
            for (const std::uint32_t alignment : {0u, 64u})
              out.push_back({.dirty = k_rbx | k_rbp,
                             .frame_pointer = fp,
                             .local_size = 8,
                             .alignment = alignment,
                             .avx_cleanup = avx,
                             .mmx_cleanup = mmx,
                             .branch_protection = branch,
                             .masks = masks});
}

// Emission of code.

/// Arguments behind the six in registers are on the stack.
std::uint32_t argument_count(const FrameWish& wish) { return wish.popped == 0 ? 0 : 6 + wish.popped / 8; }

void apply(const FrameWish& wish, asmjit::FuncFrame& frame) {
  add_dirty(frame, RegGroup::kGp, wish.dirty);
  add_dirty(frame, RegGroup::kVec, wish.dirty_vectors);
  if (wish.frame_pointer) set_preserved_fp(frame);
  set_local_stack(frame, wish.local_size, wish.alignment);
  if (wish.call_stack != 0) set_call_stack_size(frame, wish.call_stack);
  if (wish.calls) set_func_calls(frame);
  if (wish.argument_register != UINT32_MAX) set_sa_register(frame, wish.argument_register);
  if (wish.avx) set_avx_enabled(frame);
  if (wish.avx_cleanup) set_avx_cleanup(frame);
  if (wish.mmx_cleanup) set_mmx_cleanup(frame);
  if (wish.branch_protection) set_branch_protection(frame);
}

/// Fills the frame from end to end.
void fill(Emitter& e, asmjit::x86::Mem memory, std::uint32_t bytes) {
  memory.JITUNWIND_ASMJIT(setSize, set_size)(1);
  for (std::uint32_t at = 0; at < bytes; at = at + 64 >= bytes && at + 1 < bytes ? bytes - 1 : at + 64) {
    asmjit::x86::Mem byte = memory;
    byte.JITUNWIND_ASMJIT(addOffset, add_offset)(at);
    e.mov(byte, 0x5a);
  }
}

void call_helper(Emitter& e, const FrameWish& wish) {
  const bool ms = preserves_like_windows(wish.convention);
  e.mov(asmjit::x86::rax, reinterpret_cast<std::uintptr_t>(ms ? reinterpret_cast<void*>(&frame_shapes_helper_ms)
                                                              : reinterpret_cast<void*>(&frame_shapes_helper)));
  e.call(asmjit::x86::rax);
}

void destroy(Emitter& e, std::uint32_t general, std::uint32_t vectors) {
  for (std::uint32_t id = 0; id < 16; ++id)
    if (general >> id & 1) e.mov(asmjit::x86::gpq(id), static_cast<int>(0x600d0000 + id));
  for (std::uint32_t id = 0; id < 16; ++id)
    if (vectors >> id & 1) e.xorps(asmjit::x86::xmm(id), asmjit::x86::xmm(id));
}

/// Returns the registers that a body may destroy: those that callers cannot rely on, and those that the frame saved.
std::uint32_t destructible(const asmjit::FuncFrame& frame) {
  const auto preserved = static_cast<std::uint32_t>(v::preserved_registers(frame, RegGroup::kGp));
  const std::uint32_t kept = preserved & ~saved_registers(frame, RegGroup::kGp);
  return 0xffff & ~kept & ~(1u << k_sp_id) & ~(has_preserved_fp(frame) ? 1u << k_bp_id : 0);
}

void emit_with_frame(Emitter& e, const FrameWish& wish) {
  asmjit::FuncDetail detail;
  check(detail.init(IntegerSignature(wish.convention, argument_count(wish)), e.environment()), "FuncDetail::init");
  auto& convention = detail.JITUNWIND_ASMJIT(_callConv, _call_conv);
  const auto preserve = [&](RegGroup group, std::uint32_t mask) {
    convention.JITUNWIND_ASMJIT(setPreservedRegs, set_preserved_regs)(group, mask);
  };
  if (wish.popped != 0) convention.JITUNWIND_ASMJIT(addFlags, add_flags)(asmjit::CallConvFlags::kCalleePopsStack);
  if (wish.masks) preserve(RegGroup::JITUNWIND_ASMJIT(kX86_K, kMask), 0x06), preserve(RegGroup::kX86_MM, 0x08);
  asmjit::FuncFrame frame;
  check(frame.init(detail), "FuncFrame::init");
  apply(wish, frame);
  if (wish.masks) {
    add_dirty(frame, RegGroup::JITUNWIND_ASMJIT(kX86_K, kMask), 0x06);
    add_dirty(frame, RegGroup::kX86_MM, 0x08);
  }
  check(frame.finalize(), "FuncFrame::finalize");
  check(emit_prolog(e, frame), "emitProlog");
  fill(e, asmjit::x86::ptr(asmjit::x86::rsp), wish.call_stack);
  fill(e, asmjit::x86::ptr(asmjit::x86::rsp, static_cast<int>(local_stack_offset(frame))), wish.local_size);
  if (wish.calls) call_helper(e, wish);
  destroy(e, destructible(frame), saved_registers(frame, RegGroup::kVec));
  if (wish.masks) e.kxnorq(asmjit::x86::k1, asmjit::x86::k1, asmjit::x86::k1);
  check(emit_epilog(e, frame), "emitEpilog");
}

/// The register allocator itself decides on the local stack and the argument register, so the wishes are expressed as
/// variables and as arguments on the stack.
void emit_function(asmjit::x86::Compiler& cc, const FrameWish& wish, const asmjit::Label& label) {
  const bool takes_stack_argument = wish.argument_register != UINT32_MAX;
  check(cc.bind(label), "bind");
  asmjit::FuncNode* function =
      add_func(cc, IntegerSignature(wish.convention, argument_count(wish) + (takes_stack_argument ? 8 : 0)));
  if (!function) throw std::runtime_error("addFunc");
  asmjit::FuncFrame& frame = function->frame();
  apply(wish, frame);
  frame.JITUNWIND_ASMJIT(_calleeStackCleanup, _callee_stack_cleanup) = static_cast<std::uint16_t>(wish.popped);
  if (takes_stack_argument) {
    const asmjit::x86::Gp argument = new_int64(cc);
    set_arg(*function, 7, argument);
    cc.add(argument, argument);
  }
  auto& e = *cc.as<Emitter>();
  if (wish.local_size != 0) fill(e, new_stack(cc, wish.local_size, std::max(wish.alignment, 1u)), wish.local_size);
  if (wish.calls) {
    const bool ms = preserves_like_windows(wish.convention);
    (void)invoke(cc,
                 reinterpret_cast<std::uintptr_t>(ms ? reinterpret_cast<void*>(&frame_shapes_helper_ms)
                                                     : reinterpret_cast<void*>(&frame_shapes_helper)),
                 signature<void>(ms ? CallConvId::kX64Windows : CallConvId::kCDecl));
  }
  const std::uint32_t fp = wish.frame_pointer ? 1u << k_bp_id : 0;
  destroy(e, wish.dirty & ~fp & ~(1u << k_sp_id), wish.dirty_vectors & 0xffff);
  check(end_func(cc), "endFunc");
}

bool has_what_it_needs(const FrameWish& wish) {
  if (wish.masks && !__builtin_cpu_supports("avx512bw")) return false;
  return !(wish.avx || wish.avx_cleanup) || __builtin_cpu_supports("avx");
}

}  // namespace

std::string FrameWish::text() const {
  const auto number = [](const char* name, std::uint64_t value) {
    return value == 0 ? "" : std::string(" ") + name + "=" + std::to_string(value);
  };
  const auto flag = [](const char* name, bool value) { return value ? std::string(" ") + name : ""; };
  return "convention=" + std::to_string(static_cast<int>(convention)) + number("dirty", dirty) +
         number("vectors", dirty_vectors) + flag("fp", frame_pointer) + number("local", local_size) +
         number("align", alignment) + number("call_stack", call_stack) + flag("calls", calls) +
         (argument_register == UINT32_MAX ? "" : " sa=" + std::to_string(argument_register)) + number("pop", popped) +
         flag("avx", avx) + flag("vzeroupper", avx_cleanup) + flag("emms", mmx_cleanup) +
         flag("endbr", branch_protection) + flag("masks", masks);
}

std::vector<FrameWish> all_frame_wishes() {
  Wishes all;
  add_register_sets(all);
  add_sizes(all);
  add_argument_registers(all);
  add_vector_saves(all);
  add_light_calls(all);
  add_returns_and_cleanups(all);
  std::erase_if(all, [](const FrameWish& w) { return !has_what_it_needs(w); });
  return all;
}

std::vector<FrameWish> some_frame_wishes() {
  const Wishes all = all_frame_wishes();
  Wishes some;
  // 29 has no factor in common with the sizes of the lists: every value of every wish turns up.
  for (std::size_t i = 0; i < all.size(); i += 29) some.push_back(all[i]);
  return some;
}

bool follows_psabi(CallConvId convention) { return !preserves_like_windows(convention) && !is_light(convention); }

std::vector<RegNum> preserved_by(CallConvId convention) {
  std::uint64_t general = k_sysv, vectors = 0;
  if (preserves_like_windows(convention)) general = k_windows, vectors = 0xffc0;
  if (is_light(convention)) general = 0xffff, vectors = 0xfff0;
  const derivation::RegSet set = derivation::registers_of(general, vectors);
  std::vector<RegNum> out;
  for (RegNum r = 0; r < derivation::k_tracked_registers; ++r)
    if (derivation::has(set, r)) out.push_back(r);
  return out;
}

void emit_frame(asmjit::BaseEmitter& emitter, EmitterKind kind, const FrameWish& wish, const asmjit::Label& label) {
  if (kind == EmitterKind::compiler) return emit_function(*emitter.as<asmjit::x86::Compiler>(), wish, label);
  check(emitter.bind(label), "bind");
  emit_with_frame(*emitter.as<Emitter>(), wish);
}

}  // namespace jitunwind::test

#include "jitunwind/unwind_core/walk/resume.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/context_p.h"

// AddressSanitizer keeps marks on the stack that only returns take back.
extern "C" [[gnu::weak]] void __asan_handle_no_return();

namespace jitunwind {
namespace {

Status check(const Cursor& cursor) noexcept {
  const Arch& arch = cursor.space().arch;
  MemoryWindow window;
  if (!is_code(cursor.space(), window, cursor.pc()))
    return Error{ErrorCode::invalid_ip, cursor.pc(), "pc to resume at"};
  const auto sp = cursor.get(arch.sp);
  if (!sp) return sp.error();
  if (*sp == 0 || *sp % arch.sp_granularity != 0) return Error{ErrorCode::bad_frame, *sp, "SP to resume with"};
  // This is the end of an empty stack.
  const auto is_mapped = [&](Addr at) { return cursor.space().memory.view(at, 1, window) != nullptr; };
  if (!is_mapped(*sp) && !is_mapped(*sp - 1)) return Error{ErrorCode::bad_frame, *sp, "SP to resume with: no memory"};
  return Done{};
}

/// The kernel's saved state of interrupted code.
struct KernelFrame {
  Addr ucontext = 0;  ///< 0: it has saved nothing
  bool is_of_sigreturn = false;
};

KernelFrame kernel_frame(const AddressSpace& space, const Cursor::SignalContext& signal) noexcept {
  if (signal.ucontext == 0 || signal.pc == 0) return {signal.ucontext};
  MemoryWindow window;
  const CodePattern* const trampoline = find_pattern(space.arch.trampolines, signal.pc, space.memory, window);
  if (!trampoline) return {};
  const auto further = static_cast<Addr>(std::int64_t{trampoline->cfa_offset});
  return {signal.ucontext + further, further != 0 && space.arch.sigreturn.exists()};
}

constexpr std::size_t k_mask_size = 8;  // of the kernel's
constexpr std::size_t k_upto_mask = offsetof(ucontext_t, uc_sigmask) + k_mask_size;
static_assert(offsetof(ucontext_t, uc_stack) + sizeof(stack_t) <= k_upto_mask);

/// The beginning of the kernel's ucontext_t, at least as far as its mask. A frame of sigreturn gets a new one that
/// leaves the signal stack as it is.
bool read_ucontext(const AddressSpace& space, const KernelFrame& frame, std::span<std::byte> into) noexcept {
  MemoryWindow window;
  if (space.memory.read(frame.ucontext, into, window) != into.size()) return false;
  if (!frame.is_of_sigreturn) return true;
  ucontext_t made{};
  (void)::sigaltstack(nullptr, &made.uc_stack);
  const auto mask = std::as_writable_bytes(std::span(&made.uc_sigmask, 1)).first(k_mask_size);
  const auto half_at = [&](std::int16_t offset, std::span<std::byte> half) {
    return space.memory.read(frame.ucontext + static_cast<Addr>(std::int64_t{offset}), half, window) == half.size();
  };
  const SigreturnFrame& offsets = space.arch.sigreturn;
  if (!half_at(offsets.mask, mask.first(4)) || !half_at(offsets.mask_upper, mask.subspan(4))) return false;
  std::memcpy(into.data(), &made, offsetof(ucontext_t, uc_mcontext));
  std::memcpy(into.data() + offsetof(ucontext_t, uc_sigmask), mask.data(), mask.size());
  return true;
}

/// Out of line: threads without a shadow stack have no room for this. So the walk begins in this function. The entry of
/// its own return address is gone when it has returned; in its place is that of the call which pops them.
[[gnu::noinline]] Result<std::uint64_t> count_entries_to_pop(const AddressSpace& space, Addr sp) noexcept {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  return with_room([&] { return shadow_stack_entries(Cursor(space, context, Cursor::Top::returned_to), sp); });
}

/// 0 without a shadow stack. `sp` is that of the frame to end in. Inline: a call would have an entry of its own.
[[gnu::always_inline]] inline Result<std::uint64_t> entries_to_pop(const AddressSpace& space, Addr sp) noexcept {
  return jitunwind_shadow_stack_pointer() == 0 ? 0 : count_entries_to_pop(space, sp);
}

/// Goes on by a copy of the kernel's frame, and the kernel does the rest: floating-point state is where the copy says.
/// The frame itself stays as it is, so that a handler which comes meanwhile walks through it.
/// It goes on by the frame itself where more belongs to it than can be copied.
JITUNWIND_LEFT_BY_A_JUMP Status resume_by_kernel(const Cursor& cursor, const KernelFrame& from) noexcept {
  const AddressSpace& space = cursor.space();
  const Cursor::SignalContext& signal = cursor.signal_context();
  constexpr std::size_t k_copied = 512;  // of a ucontext_t that holds registers and points to the rest
  const bool is_whole = space.arch.records != nullptr;
  alignas(16) std::array<std::byte, k_registers_size> room;
  const std::span<std::byte> copy = std::span(room).first(is_whole ? room.size() : k_copied);
  if (!read_ucontext(space, from, copy))
    return Error{ErrorCode::bad_frame, from.ucontext, "ucontext_t of a signal frame"};
  registers_to_ucontext(cursor.registers(), space.arch, copy.data());
  RegisterFile address;  // of a caller it may be signed there
  address.set(space.arch.column(space.arch.pc), cursor.pc());
  registers_to_ucontext(address, space.arch, copy.data());
  // The kernel looks for its own entry on top of the shadow stack: one less than the interrupted code had.
  const bool leaves_code = cursor.depth() != signal.depth;
  if (leaves_code) end_records_behind_vectors(space.arch, copy.data());
  const auto entries = entries_to_pop(space, signal.ucontext - static_cast<Addr>(space.arch.sigframe_ucontext));
  if (!entries) return entries.error();
  void* frame = copy.data();
  if (is_whole || under_valgrind()) {  // which has more in its frames than the kernel, and no use for a copy of this
    MemoryWindow window;
    if (!space.memory.write(from.ucontext, copy, window))
      return Error{ErrorCode::bad_frame, from.ucontext, "ucontext_t of a signal frame"};
    frame = reinterpret_cast<void*>(static_cast<std::uintptr_t>(from.ucontext));
  }
  if (__asan_handle_no_return) __asan_handle_no_return();
  jitunwind_return_from_signal(frame, *entries, leaves_code);
}

/// The state of the thread in the kernel's frame besides its registers.
void restore_signal_state(const AddressSpace& space, const KernelFrame& frame) noexcept {
  ucontext_t saved;
  if (!read_ucontext(space, frame, std::as_writable_bytes(std::span(&saved, 1)).first(k_upto_mask))) return;
  (void)::sigaltstack(&saved.uc_stack, nullptr);
  (void)::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved.uc_sigmask, nullptr, k_mask_size);
}

JITUNWIND_LEFT_BY_A_JUMP Status resume_here(const Cursor& cursor, const KernelFrame& from) noexcept {
  const AddressSpace& space = cursor.space();
  const Arch& arch = space.arch;
  RegisterFile registers = cursor.registers();
  registers.change(arch.column(arch.sp), cursor.sp() + cursor.pushed_arguments());
  registers.change(arch.column(arch.pc), cursor.pc());
  if (from.ucontext != 0) restore_signal_state(space, from);
  alignas(16) std::byte context[k_registers_size]{};
  registers_to_ucontext(registers, arch, context);
  return go_on_with(space, context, cursor.frame_sp());
}

}  // namespace

JITUNWIND_LEFT_BY_A_JUMP Error go_on_with(const AddressSpace& space, const void* ucontext, Addr frame_sp) noexcept {
  const auto entries = entries_to_pop(space, frame_sp);
  if (!entries) return entries.error();
  if (__asan_handle_no_return) __asan_handle_no_return();
  jitunwind_restore_context(ucontext, *entries);
}

Result<std::uint64_t> shadow_stack_entries(Cursor from, Addr sp) noexcept {
  while (from.sp() != sp) {
    const auto moved = from.step();
    if (!moved) return moved.error();
    if (!*moved) return Error{ErrorCode::no_info, sp, "frame to resume is not on this stack"};
  }
  return from.depth();
}

JITUNWIND_LEFT_BY_A_JUMP Status resume(const Cursor& cursor) noexcept {
  if (const Status good = check(cursor); !good) return good;
  const Cursor::SignalContext& signal = cursor.signal_context();
  const KernelFrame from = kernel_frame(cursor.space(), signal);
  // The kernel takes its own entry off the shadow stack and no more: frames above are left here.
  const bool above_shadow = cursor.depth() != signal.depth && jitunwind_shadow_stack_pointer() != 0;
  if (from.ucontext != 0 && !above_shadow) return resume_by_kernel(cursor, from);
  if (!cursor.address().is_return_address() && !cursor.pc_written())
    return Error{ErrorCode::invalid_argument, cursor.pc(), "interrupted frame without the kernel's ucontext_t"};
  return resume_here(cursor, from);
}

}  // namespace jitunwind

// Going on in a frame of a walk: a non-local goto over the frames below it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/walk/cursor.h"

extern "C" {
/// Loads the registers of a ucontext_t and goes on at its pc; one scratch register is lost, floating-point state and
/// signal mask stay. Takes `shadow_stack_entries` off the shadow stack: 0 where there is none. Signal-safe.
[[noreturn]] void jitunwind_restore_context(const void* ucontext, std::uint64_t shadow_stack_entries) noexcept;
/// Lets the kernel restore everything from the ucontext_t of a signal frame, or from a copy of it that lies on the
/// stack above the caller. `leaves_code` is not 0 where the registers are no longer those of the interrupted code:
/// flags that every function finds cleared are cleared then. Signal-safe.
[[noreturn]] void jitunwind_return_from_signal(void* ucontext, std::uint64_t shadow_stack_entries,
                                               int leaves_code) noexcept;
/// Top of the thread's shadow stack; 0: it has none. Signal-safe.
std::uint64_t jitunwind_shadow_stack_pointer(void) noexcept;
}

#pragma GCC visibility push(default)
namespace jitunwind {

/// Continues at the cursor's pc with the registers of its frame, those that Cursor::set() has written included. Does
/// not return on success. The frames below are left without anything of them being run: no personality routine, no
/// destructor. Preserved registers are those of the frame, exception registers are what was written, other registers
/// are anything. Below a signal frame the kernel has saved all registers, the floating-point state, the signal mask and
/// the alternate stack: they are those of the interrupted code.
///
/// Precondition: the cursor walks the calling thread's stack in this process, and its frame has not returned. Errors,
/// and nothing has changed: invalid_ip, the pc is not executable; bad_frame, SP unknown, not aligned or no memory, or
/// the kernel's frame cannot be read; invalid_argument, a frame that was interrupted, but not by the kernel: its
/// scratch registers cannot all be restored; any error of the walk. Signal-safe.
Status resume(const Cursor& cursor) noexcept;

/// Does as resume(), with registers that the caller answers for, SP and pc among them, in a ucontext_t. Nothing is
/// checked. `frame_sp` is the SP that the frame has on a walk. Returns only when the shadow stack cannot be popped.
Error go_on_with(const AddressSpace& space, const void* ucontext, Addr frame_sp) noexcept;
/// The part of a ucontext_t that holds every register that go_on_with() restores.
inline constexpr std::size_t k_registers_size = k_context_size;

/// Counts the entries of the shadow stack between the frame `from` and the one whose SP is `sp`. Calls and signal
/// frames leave one each, so that it is the number of steps. Error no_info when the walk does not come to `sp`.
Result<std::uint64_t> shadow_stack_entries(Cursor from, Addr sp) noexcept;

/// Intel SDM, volume 2, "INCSSP": the instruction looks at the low 8 bits of its operand only. Returns how many of
/// `entries` the next instruction takes.
constexpr std::uint64_t next_shadow_stack_pop(std::uint64_t entries) noexcept { return entries < 255 ? entries : 255; }

}  // namespace jitunwind
#pragma GCC visibility pop

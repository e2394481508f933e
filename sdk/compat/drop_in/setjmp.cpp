// libunwind-setjmp.so.0: setjmp() stores three registers and a mark, longjmp() walks to the frame. A buffer without a
// mark was set by the C library, which then jumps. The C library's own __sigsetjmp() remains the sigsetjmp() of
// <setjmp.h>: pthread_cleanup_push() of C calls it too, for buffers that only the C library reads (pthread.h,
// __sigsetjmp_cancel). The C library's longjmp() cannot jump by buffers of this library.
#include <dlfcn.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "jitunwind/unwind_core/walk/resume.h"

namespace {

using jitunwind::Addr;

struct JumpBuffer {
  Addr pc;
  Addr sp;  ///< after the call
  Addr fp;
  std::uint64_t mark;
  std::uint64_t mask;  ///< the kernel's form: signal n is bit n - 1
};

constexpr std::uint64_t k_without_mask = 0x6a69'7475'6e77'6a62;
constexpr std::uint64_t k_with_mask = ~k_without_mask;

[[noreturn]] void give_up(const char* why) {
  jitunwind::write_to_standard_error(why);
  std::abort();
}

/// SP of the caller of the function that called setjmp(), by its row there. Empty: it has no caller.
std::optional<Addr> callers_sp(const JumpBuffer& buffer, const jitunwind::AddressSpace& space) {
  const jitunwind::Arch& arch = space.arch;
  jitunwind::RegisterFile registers;
  registers.set(arch.column(arch.pc), buffer.pc);
  registers.set(arch.column(arch.sp), buffer.sp);
  registers.set(arch.column(arch.fp), buffer.fp);
  jitunwind::Cursor cursor(space, registers, jitunwind::Cursor::Top::returned_to);
  const auto moved = cursor.step();
  return moved && *moved ? std::optional(cursor.sp()) : std::nullopt;
}

/// The frame that has called setjmp(): the one whose caller has the same SP. If the caller's SP is not known, SP of the
/// call lies between the frame's present SP and its caller's. A function that pushed arguments for setjmp() alone has a
/// higher SP now.
jitunwind::Cursor frame_of(const JumpBuffer& buffer) {
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  jitunwind::Cursor cursor = jitunwind::cursor_at(context, jitunwind::Cursor::Top::returned_to);
  const std::optional<Addr> sp_of_caller = callers_sp(buffer, cursor.space());
  for (;;) {
    jitunwind::Cursor caller = cursor;
    const auto moved = caller.step();
    if (!moved) give_up("jitunwind: longjmp: the frame cannot be reached: no way through the stack\n");
    const bool lies_between = cursor.sp() <= buffer.sp && (!*moved || buffer.sp < caller.sp());
    const bool reaches = sp_of_caller ? *moved && caller.sp() == *sp_of_caller : lies_between;
    if (reaches && cursor.depth() != 0) return cursor;
    if (!*moved) give_up("jitunwind: longjmp: the frame is not on this stack\n");
    cursor = caller;
  }
}

/// The C library's functions, by the names of the functions that pass calls on to them. They are found at load: a later
/// lookup would take a lock, even in a handler.
struct NextJump {
  using Jump = void(void*, int);
  explicit NextJump(const char* name) noexcept : function(reinterpret_cast<Jump*>(::dlsym(RTLD_NEXT, name))) {}
  Jump* function;
};

[[noreturn]] void jump(void* to, int value, const NextJump& next) {
  JumpBuffer buffer;
  std::memcpy(&buffer, to, sizeof buffer);
  if (buffer.mark != k_with_mask && buffer.mark != k_without_mask) {
    const bool is_set = buffer.pc != 0 || buffer.sp != 0 || buffer.fp != 0;
    if (is_set && next.function) next.function(to, value);
    give_up("jitunwind: longjmp: the buffer was never set\n");
  }
  const jitunwind::Cursor cursor = frame_of(buffer);
  const jitunwind::AddressSpace& space = cursor.space();
  const jitunwind::Arch& arch = space.arch;
  jitunwind::RegisterFile registers = cursor.registers();
  registers.change(arch.column(arch.pc), buffer.pc);
  registers.change(arch.column(arch.sp), buffer.sp);
  registers.change(arch.column(arch.exception_registers[0]), static_cast<std::uint64_t>(value == 0 ? 1 : value));
  if (buffer.mark == k_with_mask) {
    sigset_t mask;
    sigemptyset(&mask);
    std::memcpy(&mask, &buffer.mask, sizeof buffer.mask);
    (void)::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  }
  alignas(16) std::byte context[jitunwind::k_registers_size]{};
  registers_to_ucontext(registers, arch, context);
  (void)go_on_with(space, context, cursor.sp());
  give_up("jitunwind: longjmp: the shadow stack cannot be popped\n");
}

}  // namespace

extern "C" {

/// The end of setjmp(), called by unwind_core/arch/*/setjmp.S: returns its result.
[[gnu::visibility("hidden")]] int jitunwind_save_mask(void* to, int wanted) {
  sigset_t mask;
  sigemptyset(&mask);
  if (wanted) (void)::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  JumpBuffer buffer;
  std::memcpy(&buffer, to, sizeof buffer);
  buffer.mark = wanted ? k_with_mask : k_without_mask;
  std::memcpy(&buffer.mask, &mask, sizeof buffer.mask);
  std::memcpy(to, &buffer, sizeof buffer);
  return 0;
}

#define JITUNWIND_JUMP(name)                                                                      \
  [[gnu::visibility("default"), noreturn]] void jitunwind_##name(void* to, int value) asm(#name); \
  static const NextJump next_##name{#name};                                                       \
  void jitunwind_##name(void* to, int value) { jump(to, value, next_##name); }
JITUNWIND_JUMP(longjmp)
JITUNWIND_JUMP(_longjmp)
JITUNWIND_JUMP(siglongjmp)
JITUNWIND_JUMP(__longjmp_chk)  // with _FORTIFY_SOURCE
}

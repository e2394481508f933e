// The functions of libunwind's interface that walk this process from a context.
#include <new>
#include <span>

#include "sdk/compat/callback_space_p.h"
#include "sdk/compat/cursor_p.h"
#include "sdk/compat/local_names_p.h"
#include "sdk/walk.h"
#include "unwind_core/context.h"

namespace {

using jitunwind::Cursor;
using jitunwind::cursor_of;

int init(unw_cursor_t* cursor, const unw_context_t* context, Cursor::Top top) noexcept {
  const jitunwind::AddressSpace& space = jitunwind::space_of_process();
  new (cursor) Cursor(space, jitunwind::registers_from_ucontext(context, space.arch), top, nullptr,
                      reinterpret_cast<std::uintptr_t>(context));
  return UNW_ESUCCESS;
}

}  // namespace

extern "C" {

int unw_init_local(unw_cursor_t* cursor, unw_context_t* context) {
  return init(cursor, context, Cursor::Top::returned_to);
}

int unw_init_local2(unw_cursor_t* cursor, unw_context_t* context, int flag) {
  if (flag == 0) return init(cursor, context, Cursor::Top::returned_to);
  if (flag == UNW_INIT_SIGNAL_FRAME) return init(cursor, context, Cursor::Top::interrupted);
  return -UNW_EINVAL;
}

int unw_backtrace2(void** addresses, int size, unw_context_t* context, int flag) {
  if (!addresses || size <= 0) return 0;
  if (!context) return unw_backtrace(addresses, size);
  unw_cursor_t cursor;
  if (unw_init_local2(&cursor, context, flag) != UNW_ESUCCESS) return 0;
  Cursor& at = cursor_of(&cursor);
  addresses[0] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(at.pc()));
  const auto rest = std::span(addresses, static_cast<std::size_t>(size)).subspan(1);
  return 1 + static_cast<int>(jitunwind::return_addresses(at, rest));
}

int unw_backtrace(void** addresses, int size) {
  // First of all: what follows an early return compilers move into a function of its own, which has a frame.
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  if (!addresses || size <= 0) return 0;
  Cursor cursor = jitunwind::cursor_at(context, Cursor::Top::returned_to);
  return static_cast<int>(jitunwind::return_addresses(cursor, {addresses, static_cast<std::size_t>(size)}));
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(init_local)
JITUNWIND_LOCAL(init_local2)
}

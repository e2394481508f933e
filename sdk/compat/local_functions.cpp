// The functions of libunwind's interface that walk this process from a context.
#include <new>
#include <span>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/cursor_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace {

using jitunwind::Cursor;
using jitunwind::cursor_of;

int init(unw_cursor_t* cursor, const unw_context_t* context, Cursor::Top top) noexcept {
  if (!context) return -UNW_EINVAL;
  const jitunwind::AddressSpace& space = jitunwind::space_of_process();
  new (cursor) Cursor(space, context, top, nullptr, reinterpret_cast<std::uintptr_t>(context));
  jitunwind::expect_walk_by(cursor_of(cursor));
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
  if (flag != 0 && flag != UNW_INIT_SIGNAL_FRAME) return 0;
  const std::span<void*> into(addresses, static_cast<std::size_t>(size));
  const auto top = flag == 0 ? Cursor::Top::returned_to : Cursor::Top::interrupted;
  if (&jitunwind::space_of_process() == &jitunwind::local_space())
    return static_cast<int>(jitunwind::backtrace(context, top, into));
  return jitunwind::with_room([&] {
    unw_cursor_t cursor;
    (void)init(&cursor, context, top);
    return static_cast<int>(jitunwind::list_addresses(cursor_of(&cursor), jitunwind::WalkPart::whole, into));
  });
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(init_local)
JITUNWIND_LOCAL(init_local2)
}

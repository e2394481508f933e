// The functions of libunwind's interface for this process: walks from a context, and registration.
#include <new>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/compat/callback_space_p.h"
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

// The interface cannot report errors: a refused descriptor is ignored.
void _U_dyn_register(unw_dyn_info_t* di) { (void)jitunwind::register_procedure(di); }
void _U_dyn_cancel(unw_dyn_info_t* di) { (void)jitunwind::cancel_procedure(di); }

unw_word_t _U_dyn_info_list_addr(void) { return reinterpret_cast<unw_word_t>(jitunwind::procedure_list()); }

size_t _U_dyn_region_size(int op_count) {
  return op_count < 0 ? 0 : _U_dyn_region_info_size(static_cast<unsigned>(op_count));
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(init_local)
JITUNWIND_LOCAL(init_local2)
}

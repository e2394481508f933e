// unw_local_addr_space: this process through accessors, for programs that wrap them or call them alone. The argument of
// each is the first context of a walk.
#include <cstring>
#include <new>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/resume.h"

namespace {

// The functions of libunwind's interface for this process: walks from a context, and registration.

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

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

constinit const LocalMemory k_memory;

void add_unwind_info(const ProcedureInfo& found, unw_proc_info_t& out) noexcept {
  if (found.origin == RowOrigin::dyn_directives) {
    auto* const registered = pointer_to<unw_dyn_info_t>(found.unwind_info);
    out.unwind_info = &registered->u;
    out.unwind_info_size = sizeof registered->u;
  } else {
    mark_as_fde(out);
  }
}

int find_proc_info(unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info, void*) {
  MemoryWindow window;
  Lookup lookup(space_of_process(), CodeAddress::interrupted(ip), window);
  ProcedureInfo found;
  const Found known = lookup.space.find_procedure(lookup, found);
  // Code that is recognised by its bytes has no FDE. The rules of .debug_frame need more than the FDE alone.
  const bool has_answer = found.unwind_info != 0 && found.origin != RowOrigin::debug_frame;
  if (known && *known && need_unwind_info && !has_answer) return -UNW_ENOINFO;
  const int returned = answer(known, found, *info);
  if (returned == UNW_ESUCCESS && need_unwind_info) add_unwind_info(found, *info);
  return returned;
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}

int get_dyn_info_list_addr(unw_addr_space_t, unw_word_t* list, void*) {
  *list = reinterpret_cast<std::uintptr_t>(procedure_list());
  return UNW_ESUCCESS;
}

int access_mem(unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void*) {
  MemoryWindow window;
  const Arch& arch = local_space().arch;
  if (write) {
    const Status written = write_word(k_memory, window, at, *value, arch, "word");
    return written ? int{UNW_ESUCCESS} : negated(written.error());
  }
  const auto read = read_word(k_memory, window, at, arch, "word");
  if (!read) return negated(read.error());
  *value = *read;
  return UNW_ESUCCESS;
}

/// A register may be smaller than unw_word_t. It is then the first bytes of the word, since hosts are little-endian.
int access_reg(unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int write, void* context) {
  const Arch& arch = local_space().arch;
  const RegisterInfo* const info = arch.by_libunwind(reg);
  if (!info || info->ucontext < 0 || !context) return -UNW_EBADREG;
  std::byte* const place = static_cast<std::byte*>(context) + info->ucontext;
  if (write) {
    std::memcpy(place, value, arch.word_size);
  } else {
    *value = 0;
    std::memcpy(value, place, arch.word_size);
  }
  return UNW_ESUCCESS;
}

/// The low 8 bytes of the registers that calls preserve, if the context has them.
int access_fpreg(unw_addr_space_t, unw_regnum_t reg, unw_fpreg_t* value, int write, void* context) {
  const Arch& arch = local_space().arch;
  const RegisterInfo* const info = arch.by_libunwind(reg);
  if (!info || info->reg_class != RegClass::vector || !context) return -UNW_EBADREG;
  RegisterFile registers = registers_from_ucontext(context, arch);
  const auto low = registers.get(info->column);
  if (!low) return -UNW_EBADREG;
  if (write) {
    registers.clear();
    registers.set(info->column, low_half(*value));
    registers_to_ucontext(registers, arch, context);
  } else {
    set_to_low_half(*value, *low);
  }
  return UNW_ESUCCESS;
}

/// Resumes with the registers that access_reg has written, not with those of the cursor.
int resume_context(unw_addr_space_t, unw_cursor_t*, void* context) {
  const AddressSpace& space = local_space();
  const RegisterFile registers = registers_from_ucontext(context, space.arch);
  const auto sp = registers.get(space.arch.column(space.arch.sp));
  return negated(go_on_with(space, context, sp.value_or(0)));
}

int get_proc_name(unw_addr_space_t, unw_word_t at, char* buffer, std::size_t size, unw_word_t* offset, void*) {
  return unw_get_proc_name_by_ip(local_handle(), at, buffer, size, offset, nullptr);
}

int get_elf_filename(unw_addr_space_t, unw_word_t at, char* buffer, std::size_t size, unw_word_t* offset, void*) {
  return unw_get_elf_filename_by_ip(local_handle(), at, buffer, size, offset, nullptr);
}

constinit unw_addr_space handle{{find_proc_info, put_unwind_info, get_dyn_info_list_addr, access_mem, access_reg,
                                 access_fpreg, resume_context, get_proc_name, get_elf_filename, nullptr, nullptr},
                                UNW_CACHE_GLOBAL};

const AddressSpace& space_as_set() noexcept {
  if (has_listed_modules()) return local_space_of_listed_modules();
  return handle.policy.load(std::memory_order_acquire) == UNW_CACHE_NONE ? local_space_without_kept_rows()
                                                                         : local_space();
}

/// Equals space_as_set(), except between a setting and choose_space_of_process(). Null: not chosen yet.
constinit std::atomic<const AddressSpace*> chosen{nullptr};

}  // namespace

unw_addr_space* local_handle() noexcept { return &handle; }

const AddressSpace& space_of_process() noexcept {
  const AddressSpace* const space = chosen.load(std::memory_order_acquire);
  return space ? *space : choose_space_of_process();
}

/// If two threads choose at the same time, the one that stores last sees the other's setting before its second check.
const AddressSpace& choose_space_of_process() noexcept {
  for (;;) {
    const AddressSpace& space = space_as_set();
    chosen.exchange(&space, std::memory_order_acq_rel);
    if (&space_as_set() == &space) return space;
  }
}

bool is_of_process(const AddressSpace& space) noexcept {
  return &space == &local_space() || &space == &local_space_without_kept_rows() ||
         &space == &local_space_of_listed_modules();
}

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

void unw_set_iterate_phdr_function(unw_addr_space_t space, unw_iterate_phdr_func_t function) {
  if (!space || !jitunwind::is_local(*space)) return;
  jitunwind::list_modules_by(function);
  jitunwind::choose_space_of_process();
}

JITUNWIND_LOCAL(set_iterate_phdr_function)

unw_addr_space_t unw_local_addr_space = &jitunwind::handle;
JITUNWIND_LOCAL(local_addr_space)
}

// libunwind's address spaces: their creation, their caches, and walks in them.
#include <endian.h>

#include <cstddef>
#include <cstring>
#include <new>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/compat/target_registers_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

/// The lookup is that of a frame that was interrupted there.
template <class Ask>
int ask_by_ip(unw_addr_space_t handle, unw_word_t ip, void* argument, Ask ask) noexcept {
  if (!handle) return -UNW_EINVAL;
  return with_room([&] {
    MemoryWindow window;
    window.argument = is_local(*handle) ? nullptr : argument;
    Lookup lookup(space_of(*handle).for_addresses(), CodeAddress::interrupted(ip), window);
    return ask(lookup);
  });
}

unw_addr_space_t create(const unw_accessors_t* accessors, std::size_t size, int byteorder) noexcept {
  if (!accessors) return nullptr;
  const Arch& arch = target_arch();
  if (byteorder != 0 && byteorder != __LITTLE_ENDIAN && byteorder != __BIG_ENDIAN) return nullptr;
  const bool big_endian = byteorder == 0 ? arch.big_endian : byteorder == __BIG_ENDIAN;
  if (big_endian != arch.big_endian && !arch.bi_endian) return nullptr;
  auto* const space = make_on_heap<CallbackSpace>(with_byte_order(arch, big_endian));
  if (!space) return nullptr;
  std::memcpy(&space->accessors, accessors, size);
  return space;
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

using jitunwind::CallbackSpace;

unw_addr_space_t unw_create_addr_space(unw_accessors_t* accessors, int byteorder) {
  return jitunwind::create(accessors, sizeof *accessors, byteorder);
}

unw_addr_space_t UNW_OBJ(create_addr_space)(unw_accessors_t* accessors, int byteorder) {
  return jitunwind::create(accessors, offsetof(unw_accessors_t, get_elf_filename), byteorder);
}

void unw_destroy_addr_space(unw_addr_space_t handle) {
  if (handle && !jitunwind::is_local(*handle)) jitunwind::destroy_on_heap(static_cast<CallbackSpace*>(handle));
}

unw_accessors_t* unw_get_accessors(unw_addr_space_t handle) {
  if (!handle) handle = jitunwind::local_handle();
  return handle ? &handle->accessors : nullptr;
}

int unw_init_remote(unw_cursor_t* cursor, unw_addr_space_t handle, void* argument) {
  if (!handle) return -UNW_EINVAL;
  if (jitunwind::is_local(*handle)) return unw_init_local(cursor, static_cast<unw_context_t*>(argument));
  const jitunwind::AddressSpace& space = jitunwind::space_of(*handle);
  const auto registers = jitunwind::TargetRegisters(*handle, argument).of_innermost_frame(space.arch);
  if (!registers) return jitunwind::negated(registers.error());
  static_cast<CallbackSpace*>(handle)->know_address_bits(argument);
  new (cursor) jitunwind::Cursor(space, *registers, jitunwind::Cursor::Top::interrupted, argument);
  return UNW_ESUCCESS;
}

int unw_set_caching_policy(unw_addr_space_t handle, unw_caching_policy_t policy) {
  if (!handle || (policy != UNW_CACHE_NONE && policy != UNW_CACHE_GLOBAL && policy != UNW_CACHE_PER_THREAD))
    return -UNW_EINVAL;
  const auto before = handle->policy.exchange(policy, std::memory_order_acq_rel);
  if (jitunwind::is_local(*handle)) jitunwind::choose_space_of_process();
  if (policy == UNW_CACHE_NONE && before != UNW_CACHE_NONE) unw_flush_cache(handle, 0, 0);
  return UNW_ESUCCESS;
}

void unw_flush_cache(unw_addr_space_t handle, unw_word_t lo, unw_word_t hi) {
  if (!handle) return;
  if (!jitunwind::is_local(*handle)) return static_cast<CallbackSpace*>(handle)->head.flush();
  const bool everything = lo == 0 && hi == 0;
  if (everything) jitunwind::forget_walked_stacks();
  if (everything || lo < hi) jitunwind::forget_rows(everything ? 0 : lo, everything ? UNW_WORD_MAX : hi);
}

int unw_get_proc_info_by_ip(unw_addr_space_t handle, unw_word_t ip, unw_proc_info_t* info, void* argument) {
  std::memset(info, 0, sizeof *info);
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureInfo found;
    const jitunwind::Found known = lookup.space.find_procedure(lookup, found);
    return jitunwind::answer(known, found, *info);
  });
}

int unw_set_cache_size(unw_addr_space_t handle, size_t size, int flag) {
  if (!handle || flag != 0) return -UNW_EINVAL;
  unw_flush_cache(handle, 0, 0);
  // No rows of other targets are kept.
  return !jitunwind::is_local(*handle) || jitunwind::keep_at_least(size) ? int{UNW_ESUCCESS} : -UNW_ENOMEM;
}

int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t handle, unw_word_t ip, unw_dyn_info_t* descriptor,
                                       unw_proc_info_t* info, int need_unwind_info, void* argument) {
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureInfo found;
    const auto known = jitunwind::described_procedure(*descriptor, lookup, found);
    const int returned = jitunwind::answer(known, found, *info);
    if (returned == UNW_ESUCCESS && need_unwind_info) jitunwind::mark_as_fde(*info);
    return returned;
  });
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(set_cache_size)
JITUNWIND_LOCAL(dwarf_search_unwind_table)
JITUNWIND_ALIAS(UNW_OBJ(search_unwind_table), UNW_OBJ(dwarf_search_unwind_table))
JITUNWIND_LOCAL(create_addr_space)
JITUNWIND_LOCAL(create_addr_space2)
JITUNWIND_LOCAL(destroy_addr_space)
JITUNWIND_LOCAL(init_remote)
JITUNWIND_LOCAL(set_caching_policy)
JITUNWIND_LOCAL(get_proc_info_by_ip)
}

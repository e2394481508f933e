// libunwind's address spaces: making them, what they cache, and walks in them.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "dyn_info/directives.h"
#include "dyn_info/registry.h"
#include "sdk/compat/callback_space_p.h"
#include "sdk/compat/cursor_p.h"
#include "sdk/compat/local_names_p.h"
#include "sdk/local_space.h"

namespace jitunwind {
namespace {

/// The registers that a target's owner gives; error where the frame could not be told from any other.
Result<RegisterFile> registers_of_target(unw_addr_space& handle, const Arch& arch, void* argument) noexcept {
  const auto access_reg = handle.accessors.access_reg;
  if (!access_reg) return Error{ErrorCode::invalid_argument, 0, "access_reg"};
  RegisterFile registers;
  for (const RegisterInfo& info : arch.registers) {
    if (!is_word_of_target(info)) continue;
    unw_word_t value = 0;
    const int returned = checked(access_reg(&handle, info.libunwind, &value, false, argument));
    if (returned == UNW_ESUCCESS)
      registers.set_from_register(info.column, value, info.dwarf);
    else if (info.dwarf == arch.pc || info.dwarf == arch.sp)
      return callback_error(returned, "access_reg");
  }
  return registers;
}

/// As the question would be asked for a frame that was interrupted there.
template <class Ask>
int ask_by_ip(unw_addr_space_t handle, unw_word_t ip, void* argument, Ask ask) noexcept {
  if (!handle) return -UNW_EINVAL;
  MemoryWindow window;
  window.argument = is_local(*handle) ? nullptr : argument;
  Lookup lookup(space_of(*handle), CodeAddress::interrupted(ip), window);
  return ask(lookup);
}

/// libunwind 1.5 to 1.6 had a word more, in front of the union. Where the name is null, as in tables of static code,
/// the word that is segbase in one layout is the name in the other.
unw_dyn_info_t with_either_layout(const unw_dyn_info_t* descriptor) noexcept {
  constexpr std::size_t k_union = offsetof(unw_dyn_info_t, u);
  const auto* const bytes = reinterpret_cast<const std::byte*>(descriptor);
  unw_dyn_info_t info;
  std::memcpy(&info, bytes, k_union);
  const bool has_word_more = descriptor->format != UNW_INFO_FORMAT_DYNAMIC && descriptor->u.rti.segbase == 0;
  std::memcpy(&info.u, bytes + k_union + (has_word_more ? sizeof(unw_word_t) : 0), sizeof info.u);
  return info;
}

struct Place {
  const AddressSpace& space;
  CodeAddress address;
};

/// Of another target its owner says it. Code that is registered is of no file, wherever it lies.
int file_of(const Place& place, void* argument, char* buffer, std::size_t size, unw_word_t* offset) noexcept {
  const NameBuffer room(buffer, size);
  const std::span<char> into = room;
  unw_addr_space& handle = handle_of(place.space);
  MemoryWindow window;
  window.argument = argument;
  Lookup lookup(place.space, place.address, window);
  ProcedureInfo procedure;
  const Found known = place.space.row_sources.front()->find_procedure(lookup, procedure);
  if (!known) return negated(known.error());
  if (*known) return -UNW_ENOINFO;
  if (!is_local(handle)) {
    const auto get = handle.accessors.get_elf_filename;
    if (!get) return -UNW_ENOINFO;
    const int returned = checked(get(&handle, place.address.value(), into.data(), into.size(), offset, argument));
    into.back() = '\0';
    return returned;
  }
  const Module* const module = lookup.module();
  if (!module) return -UNW_ENOINFO;
  // The dynamic linker has no path of the program itself.
  std::array<char, 4096> program;
  std::string_view path = module->path;
  if (path == "/proc/self/exe") {
    const ssize_t length = ::readlink(module->path, program.data(), program.size());
    if (length > 0) path = {program.data(), static_cast<std::size_t>(length)};
  }
  ProcedureName name;
  write_name(path, into, name);
  if (offset) *offset = place.address.value() - module->load_bias;
  return name.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
}

}  // namespace
}  // namespace jitunwind

extern "C" {

using jitunwind::CallbackSpace;

unw_addr_space_t UNW_OBJ(create_addr_space_sized)(const unw_accessors_t* accessors, size_t size, int byteorder) {
  const jitunwind::Arch* const arch = jitunwind::host_arch();
  if (!accessors || !arch) return nullptr;
  const int order = arch->big_endian ? __BIG_ENDIAN : __LITTLE_ENDIAN;
  if (byteorder != 0 && byteorder != order) return nullptr;
  auto* const space = new (std::nothrow) CallbackSpace(*arch);
  if (!space) return nullptr;
  std::memcpy(&space->accessors, accessors, std::min(size, sizeof space->accessors));
  return space;
}

/// The structure of libunwind 1.6 ends with get_proc_name.
unw_addr_space_t UNW_OBJ(create_addr_space)(const unw_accessors_t* accessors, int byteorder) {
  return UNW_OBJ(create_addr_space_sized)(accessors, offsetof(unw_accessors_t, get_elf_filename), byteorder);
}

void unw_destroy_addr_space(unw_addr_space_t handle) {
  if (handle && !jitunwind::is_local(*handle)) delete static_cast<CallbackSpace*>(handle);
}

unw_accessors_t* unw_get_accessors(unw_addr_space_t handle) {
  return handle ? &handle->accessors : &jitunwind::local_handle().accessors;
}

int unw_init_remote(unw_cursor_t* cursor, unw_addr_space_t handle, void* argument) {
  if (!handle) return -UNW_EINVAL;
  if (jitunwind::is_local(*handle)) return unw_init_local(cursor, static_cast<unw_context_t*>(argument));
  const jitunwind::AddressSpace& space = jitunwind::space_of(*handle);
  const auto registers = jitunwind::registers_of_target(*handle, space.arch, argument);
  if (!registers) return jitunwind::negated(registers.error());
  new (cursor) jitunwind::Cursor(space, *registers, jitunwind::Cursor::Top::interrupted, argument);
  return UNW_ESUCCESS;
}

int unw_set_caching_policy(unw_addr_space_t handle, unw_caching_policy_t policy) {
  if (!handle || (policy != UNW_CACHE_NONE && policy != UNW_CACHE_GLOBAL && policy != UNW_CACHE_PER_THREAD))
    return -UNW_EINVAL;
  const auto before = handle->policy.exchange(policy, std::memory_order_acq_rel);
  if (policy == UNW_CACHE_NONE && before != UNW_CACHE_NONE) unw_flush_cache(handle, 0, 0);
  return UNW_ESUCCESS;
}

void unw_flush_cache(unw_addr_space_t handle, unw_word_t lo, unw_word_t hi) {
  if (!handle) return;
  if (!jitunwind::is_local(*handle)) return static_cast<CallbackSpace*>(handle)->head.flush();
  const bool everything = lo == 0 && hi == 0;
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

int unw_get_proc_name_by_ip(unw_addr_space_t handle, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                            void* argument) {
  const jitunwind::NameBuffer into(buffer, size);
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureName name;
    const jitunwind::Found known = lookup.space.find_name(lookup, into, name);
    if (!known) return jitunwind::negated(known.error());
    if (!*known) return -UNW_ENOINFO;
    if (offset) *offset = ip - name.start;
    return name.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
  });
}

int unw_set_cache_size(unw_addr_space_t handle, size_t size, int flag) {
  if (!handle || flag != 0) return -UNW_EINVAL;
  unw_flush_cache(handle, 0, 0);
  // Of other targets no rows are kept at all.
  return !jitunwind::is_local(*handle) || jitunwind::keep_at_least(size) ? int{UNW_ESUCCESS} : -UNW_ENOMEM;
}

int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t handle, unw_word_t ip, unw_dyn_info_t* descriptor,
                                       unw_proc_info_t* info, int need_unwind_info, void* argument) {
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureInfo found;
    const auto known = jitunwind::described_procedure(jitunwind::with_either_layout(descriptor), lookup, found);
    const int returned = jitunwind::answer(known, found, *info);
    if (returned == UNW_ESUCCESS && need_unwind_info) jitunwind::mark_as_fde(*info);
    return returned;
  });
}

int unw_get_elf_filename_by_ip(unw_addr_space_t handle, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                               void* argument) {
  if (!handle) return -UNW_EINVAL;
  return jitunwind::file_of({jitunwind::space_of(*handle), jitunwind::CodeAddress::interrupted(ip)}, argument, buffer,
                            size, offset);
}

int unw_get_elf_filename(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  const jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  return jitunwind::file_of({at.space(), at.address()}, at.argument(), buffer, size, offset);
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(set_cache_size)
JITUNWIND_LOCAL(dwarf_search_unwind_table)
JITUNWIND_LOCAL(get_elf_filename)
JITUNWIND_LOCAL(get_elf_filename_by_ip)
JITUNWIND_LOCAL(create_addr_space)
JITUNWIND_LOCAL(create_addr_space_sized)
JITUNWIND_LOCAL(destroy_addr_space)
JITUNWIND_LOCAL(init_remote)
JITUNWIND_LOCAL(set_caching_policy)
JITUNWIND_LOCAL(get_proc_info_by_ip)
JITUNWIND_LOCAL(get_proc_name_by_ip)
}

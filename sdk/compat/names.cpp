// Names of procedures and of their files, at cursors and at addresses.
#include <unistd.h>

#include <array>
#include <string_view>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

struct Place {
  const AddressSpace& space;
  CodeAddress address;
  void* argument;
  const Cursor* walk = nullptr;
};

Place place_of(unw_cursor_t* cursor) noexcept {
  const Cursor& at = cursor_of(cursor);
  return {at.space(), at.address(), at.argument(), &at};
}
/// The address counts as that of an interrupted frame.
Place place_of(unw_addr_space& handle, unw_word_t ip, void* argument) noexcept {
  return {space_of(handle), CodeAddress::interrupted(ip), is_local(handle) ? nullptr : argument};
}

MemoryWindow window_of(const Place& place) noexcept {
  MemoryWindow window;
  window.argument = place.argument;
  return window;
}

/// A lookup at a place, in a library that another thread may be unloading.
struct Question {
  explicit Question(const Place& place) noexcept
      : window(window_of(place)), lookup(place.space.for_addresses(), place.address, window) {}
  MemoryWindow window;
  Lookup lookup;
};

/// The place at which its name is looked up.
Place named(const Place& place) noexcept {
  MemoryWindow window = window_of(place);
  return {place.space, place.space.for_addresses().named_at(place.address, window), place.argument};
}

/// Whether the code is registered, in any place.
Found is_registered(const Place& place) noexcept {
  Question question(place);
  ProcedureInfo procedure;
  return place.space.for_addresses().row_sources.front()->find_procedure(question.lookup, procedure);
}

/// Code that was registered without a name does not take the name of other code.
Found find_preceding_name(const Place& place, std::span<char> into, ProcedureName& out) noexcept {
  if (!is_of_process(place.space)) return false;
  const Found registered = is_registered(place);
  if (!registered || *registered) return false;
  Question question(place);
  return preceding_elf_name_source().find_name(question.lookup, into, out);
}

int find_name_of(const Place& at, NameReach reach, char* buffer, std::size_t size, unw_word_t* offset) noexcept {
  const NameBuffer into(buffer, size);
  const Place place = named(at);
  Question question(place);
  ProcedureName name;
  Found known = place.space.find_name(question.lookup, into, name);
  if (known && !*known && reach == NameReach::next) known = find_preceding_name(place, into, name);
  if (!known) return negated(known.error());
  if (!*known) return -UNW_ENOINFO;
  if (offset) *offset = place.address.value() - name.start;
  return name.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
}

int name_of(const Place& at, NameReach reach, char* buffer, std::size_t size, unw_word_t* offset) noexcept {
  return with_room(at.walk, [&] { return find_name_of(at, reach, buffer, size, offset); });
}

/// The owner of another target gives the answer.
int ask_for_file(unw_addr_space& handle, const Place& place, std::span<char> into, unw_word_t* offset) noexcept {
  const auto get = handle.accessors.get_elf_filename;
  if (!get) return -UNW_ENOINFO;
  unw_word_t at = 0;
  const int returned = checked(get(&handle, place.address.value(), into.data(), into.size(), &at, place.argument));
  into.back() = '\0';
  if (offset) *offset = at;
  return returned;
}

int find_file_of(const Place& place, char* buffer, std::size_t size, unw_word_t* offset) noexcept {
  const NameBuffer room(buffer, size);
  const std::span<char> into = room;
  const Found registered = is_registered(place);
  if (!registered) return negated(registered.error());
  if (*registered) return -UNW_ENOINFO;
  unw_addr_space& handle = handle_of(place.space);
  if (!is_local(handle)) return ask_for_file(handle, place, into, offset);
  Question question(place);
  const Module* const module = question.lookup.module();
  if (!module) return -UNW_ENOINFO;
  std::array<char, 4096> text;
  const std::size_t length = question.lookup.space.modules.copy_path(*module, text);
  if (length == 0 || length >= text.size()) return -UNW_ENOINFO;
  std::string_view path(text.data(), length);
  // The dynamic linker does not have the program's own path.
  if (path == "/proc/self/exe") {
    const ssize_t read = ::readlink("/proc/self/exe", text.data(), text.size());
    if (read > 0) path = {text.data(), static_cast<std::size_t>(read)};
  }
  ProcedureName name;
  write_name(path, into, name);
  if (offset) *offset = place.address.value() - module->load_bias;
  return name.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
}

int file_of(const Place& place, char* buffer, std::size_t size, unw_word_t* offset) noexcept {
  return with_room(place.walk, [&] { return find_file_of(place, buffer, size, offset); });
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

int unw_get_proc_name(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  return jitunwind::name_of(jitunwind::place_of(cursor), jitunwind::NameReach::own, buffer, size, offset);
}

int UNW_OBJ(get_nearest_proc_name)(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  return jitunwind::name_of(jitunwind::place_of(cursor), jitunwind::NameReach::next, buffer, size, offset);
}

int unw_get_proc_name_by_ip(unw_addr_space_t handle, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                            void* argument) {
  if (!handle) return -UNW_EINVAL;
  return jitunwind::name_of(jitunwind::place_of(*handle, ip, argument), jitunwind::NameReach::own, buffer, size,
                            offset);
}

int unw_get_elf_filename(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  return jitunwind::file_of(jitunwind::place_of(cursor), buffer, size, offset);
}

int unw_get_elf_filename_by_ip(unw_addr_space_t handle, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                               void* argument) {
  if (!handle) return -UNW_EINVAL;
  return jitunwind::file_of(jitunwind::place_of(*handle, ip, argument), buffer, size, offset);
}

JITUNWIND_LOCAL(get_proc_name)
JITUNWIND_LOCAL(get_proc_name_by_ip)
JITUNWIND_LOCAL(get_elf_filename)
JITUNWIND_LOCAL(get_elf_filename_by_ip)
}

// libunwind-coredump.h: a core file as a Target.
#include <new>
#include <optional>
#include <string>

#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/compat/targets/core_segment_p.h"
#include "jitunwind/sdk/compat/targets/target_answers_p.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

#include <libunwind-coredump.h>

struct UCD_info {
  UCD_info(std::string core, const jitunwind::FileIdentity& of, jitunwind::Target opened)
      : path(std::move(core)), file(of), target(std::move(opened)) {}
  const jitunwind::TargetThread& thread() const noexcept { return target.threads()[selected]; }

  std::string path;
  jitunwind::FileIdentity file;
  jitunwind::TargetFolders folders{};
  jitunwind::Target target;
  std::size_t selected = 0;
};

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

UCD_info* open_core(const char* filename) {
  const auto file = identify_file(filename);
  if (!file) return nullptr;
  auto target = Target::open_core(filename);
  // Registers have the numbers of this CPU's header.
  if (!target || target->arch().elf_machine != target_arch().elf_machine || target->threads().empty()) return nullptr;
  return new UCD_info(filename, *file, std::move(*target));
}

/// Opens the core again, with one more file. Another file may have its name by now, or the file other contents: threads
/// are numbered by those that were read first.
bool add_file(UCD_info& core, Addr at, const char* filename) {
  TargetFolders folders = core.folders;
  folders.files.emplace_back(at, filename);
  auto target = Target::open_core(core.path, folders);
  const auto file = identify_file(core.path.c_str());
  if (!target || !file || *file != core.file) return false;
  core.folders = std::move(folders);
  core.target = std::move(*target);
  return true;
}

/// Calls the function with the core's Target.
template <class Ask>
int ask(void* core, Ask ask_target) noexcept {
  return core ? ask_target(static_cast<UCD_info*>(core)->target) : -UNW_EINVAL;
}

/// The value of a register of the selected thread; empty: there is no such register, or the core does not have it.
std::optional<std::uint64_t> value_of(void* core, const RegisterInfo* reg) noexcept {
  const auto& info = *static_cast<UCD_info*>(core);
  const auto registers = info.target.registers(info.thread());
  return reg && registers ? registers->get(reg->column) : std::nullopt;
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

UCD_info* _UCD_create(const char* filename) try {
  return filename ? jitunwind::open_core(filename) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void _UCD_destroy(UCD_info* core) { delete core; }

int _UCD_get_num_threads(UCD_info* core) { return core ? static_cast<int>(core->target.threads().size()) : 0; }

void _UCD_select_thread(UCD_info* core, int number) {
  if (core && number >= 0 && number < _UCD_get_num_threads(core)) core->selected = static_cast<std::size_t>(number);
}

pid_t _UCD_get_pid(UCD_info* core) { return core ? core->thread().id : 0; }
int _UCD_get_cursig(UCD_info* core) { return core ? core->thread().signal : 0; }

int _UCD_add_backing_file_at_vaddr(UCD_info* core, unsigned long address, const char* filename) try {
  return core && filename && jitunwind::add_file(*core, address, filename) ? 0 : -1;
} catch (const std::bad_alloc&) {
  return -1;
}

int _UCD_add_backing_file_at_segment(UCD_info* core, int segment, const char* filename) {
  const auto at = core ? jitunwind::address_of_segment(core->path, segment) : std::nullopt;
  return at ? _UCD_add_backing_file_at_vaddr(core, static_cast<unsigned long>(*at), filename) : -1;
}

int _UCD_find_proc_info(unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info, void* core) {
  return jitunwind::ask(core, [&](const jitunwind::Target& target) {
    return jitunwind::find_proc_info(target, ip, *info, need_unwind_info != 0);
  });
}

void _UCD_put_unwind_info(unw_addr_space_t, unw_proc_info_t* info, void*) { jitunwind::give_back(*info); }

int _UCD_get_dyn_info_list_addr(unw_addr_space_t, unw_word_t* address, void* core) {
  return jitunwind::ask(core, [&](const jitunwind::Target& target) { return jitunwind::find_list(target, *address); });
}

int _UCD_access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* core) {
  if (write) return -UNW_EINVAL;
  return jitunwind::ask(
      core, [&](const jitunwind::Target& target) { return jitunwind::read_memory(target, address, *value); });
}

int _UCD_access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* core) {
  if (write) return -UNW_EINVAL;
  return jitunwind::ask(core, [&](const jitunwind::Target& target) {
    const auto known = jitunwind::value_of(core, jitunwind::general_register(target.arch(), number));
    if (!known) return -UNW_EBADREG;
    *value = *known;
    return int{UNW_ESUCCESS};
  });
}

int _UCD_access_fpreg(unw_addr_space_t, unw_regnum_t number, unw_fpreg_t* value, int write, void* core) {
  if (write) return -UNW_EINVAL;
  return jitunwind::ask(core, [&](const jitunwind::Target& target) {
    const auto known = jitunwind::value_of(core, jitunwind::fp_register(target.arch(), number));
    if (!known) return -UNW_EBADREG;
    jitunwind::set_to_low_half(*value, *known);
    return int{UNW_ESUCCESS};
  });
}

int _UCD_get_proc_name(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                       void* core) {
  return jitunwind::ask(core, [&](const jitunwind::Target& target) {
    return jitunwind::find_proc_name(target, address, {buffer, size}, offset);
  });
}

int _UCD_get_elf_filename(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                          void* core) {
  return jitunwind::ask(core, [&](const jitunwind::Target& target) {
    return jitunwind::find_file(target, address, {buffer, size}, offset);
  });
}

int _UCD_get_proc_ip_range(unw_addr_space_t, unw_word_t ip, unw_word_t* start, unw_word_t* end, void* core) {
  return jitunwind::ask(
      core, [&](const jitunwind::Target& target) { return jitunwind::find_range(target, ip, *start, *end); });
}

int _UCD_resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }

unw_word_t _UCD_ptrauth_insn_mask(unw_addr_space_t, void* core) {
  const jitunwind::Arch& arch = core ? static_cast<UCD_info*>(core)->target.arch() : jitunwind::target_arch();
  return ~unw_word_t{arch.address_mask};
}

unw_accessors_t _UCD_accessors = {
    _UCD_find_proc_info,
    _UCD_put_unwind_info,
    _UCD_get_dyn_info_list_addr,
    _UCD_access_mem,
    _UCD_access_reg,
    _UCD_access_fpreg,
    _UCD_resume,
    _UCD_get_proc_name,
    _UCD_get_elf_filename,
    _UCD_get_proc_ip_range,
    _UCD_ptrauth_insn_mask,
};
}

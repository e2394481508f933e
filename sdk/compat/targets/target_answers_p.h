// The answers of libunwind's accessors for a Target, the same for a process and for a core file. They are inline, since
// each of the two is a separate library.
#pragma once

#include <cstring>
#include <memory>
#include <new>

#include "jitunwind/sdk/compat/found_info_p.h"
#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

inline int negated(const Error& error) noexcept { return -unw_error(error.code); }

/// A lookup of code, as for a frame that was interrupted there.
struct Question {
  Question(const Target& target, unw_word_t ip) noexcept
      : lookup(target.space(), CodeAddress::interrupted(ip), window) {}
  MemoryWindow window;
  Lookup lookup;
};

/// The row for an address, in memory that give_back() frees.
inline int hold_row(const Target& target, unw_word_t ip, unw_proc_info_t& info) noexcept {
  Question question(target, ip);
  FrameRow row;
  const Found found = target.space().find_row(question.lookup, row);
  if (!found) return negated(found.error());
  if (!*found) return -UNW_ENOINFO;
  const AddrRange code{ip, ip + 1};  // only the looked up address
  if (info.end_ip == 0) info.start_ip = code.begin, info.end_ip = code.end;
  std::unique_ptr<RowState> state(new (std::nothrow) RowState);
  if (!state) return -UNW_ENOMEM;
  if (const Status written = write_row_state(row, code, target.arch(), *state); !written)
    return negated(written.error());
  mark_as_row(info, *state.release());
  return UNW_ESUCCESS;
}

/// find_proc_info. The answer to need_unwind_info holds a row, which give_back() frees. The row may come from any of
/// the target's sources, and need not be in its memory.
inline int find_proc_info(const Target& target, unw_word_t ip, unw_proc_info_t& info, bool need_unwind_info) noexcept {
  std::memset(&info, 0, sizeof info);
  Question question(target, ip);
  ProcedureInfo procedure;
  const Found known = target.space().find_procedure(question.lookup, procedure);
  if (!known) return negated(known.error());
  if (*known) fill(procedure, info);
  if (need_unwind_info) return hold_row(target, ip, info);
  return *known ? int{UNW_ESUCCESS} : -UNW_ENOINFO;
}

/// put_unwind_info.
inline void give_back(unw_proc_info_t& info) noexcept {
  if ((info.flags & k_row_flag) != 0) delete static_cast<RowState*>(info.unwind_info);
  info.unwind_info = nullptr;
}

/// get_dyn_info_list_addr.
inline int find_list(const Target& target, unw_word_t& address) noexcept {
  const auto head = target.registered_list();
  if (!head) return negated(head.error());
  address = *head;
  return *head != 0 ? int{UNW_ESUCCESS} : -UNW_ENOINFO;
}

/// access_mem.
inline int read_memory(const Target& target, unw_word_t address, unw_word_t& value) noexcept {
  MemoryWindow window;
  const auto word = read_word(target.space().memory, window, address, target.arch(), "word");
  if (!word) return -UNW_EINVAL;
  value = static_cast<unw_word_t>(*word);
  return UNW_ESUCCESS;
}

/// get_proc_name.
inline int find_proc_name(const Target& target, unw_word_t address, std::span<char> into, unw_word_t* offset) noexcept {
  Question question(target, address);
  ProcedureName name;
  const Found found = target.space().find_name(question.lookup, into, name);
  if (!found) return negated(found.error());
  if (!*found) return -UNW_ENOINFO;
  if (offset) *offset = address - name.start;
  return name.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
}

/// get_elf_filename.
inline int find_file(const Target& target, unw_word_t address, std::span<char> into, unw_word_t* offset) noexcept {
  Question question(target, address);
  const Module* const module = question.lookup.module();
  if (!module || *module->path == '\0') return -UNW_ENOINFO;
  ProcedureName path;
  write_name(module->path, into, path);
  if (offset) *offset = address - module->load_bias;
  return path.truncated ? -UNW_ENOMEM : int{UNW_ESUCCESS};
}

/// get_proc_ip_range.
inline int find_range(const Target& target, unw_word_t ip, unw_word_t& start, unw_word_t& end) noexcept {
  unw_proc_info_t info;
  const int returned = find_proc_info(target, ip, info, false);
  if (returned != UNW_ESUCCESS) return returned;
  start = info.start_ip, end = info.end_ip;
  return UNW_ESUCCESS;
}

/// The register with an accessor's number; null: there is none of that kind.
inline const RegisterInfo* general_register(const Arch& arch, unw_regnum_t number) noexcept {
  const RegisterInfo* const reg = arch.by_libunwind(number);
  return reg && reg->reg_class == RegClass::general && reg->prstatus >= 0 ? reg : nullptr;
}

inline const RegisterInfo* fp_register(const Arch& arch, unw_regnum_t number) noexcept {
  const RegisterInfo* const reg = arch.by_libunwind(number);
  return reg && reg->reg_class == RegClass::vector ? reg : nullptr;
}

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

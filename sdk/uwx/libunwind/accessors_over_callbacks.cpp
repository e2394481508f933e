// libunwind's accessors over an environment. find_proc_info returns the row that the callback's answer leads to, so
// that both interfaces unwind by one row. The environment keeps it until the next row is requested.
#include <uwx_libunwind.h>

#include <bit>
#include <cstring>

#include "jitunwind/sdk/compat/found_info_p.h"
#include "jitunwind/sdk/uwx/environment_p.h"

namespace jitunwind::uwx {
namespace {

Environment& environment_of(void* argument) noexcept { return static_cast<uwx_env*>(argument)->environment; }

int as_libunwind(int status) noexcept {
  switch (status) {
    case UWX_OK:
      return UNW_ESUCCESS;
    case UWX_ERR_IPNOTFOUND:
    case UWX_ERR_NOUENTRY:
    case UWX_ERR_NOUDESC:
    case UWX_ERR_NOSYM:
      return -UNW_ENOINFO;
    case UWX_ERR_NOMEM:
      return -UNW_ENOMEM;
    case UWX_ERR_BADREGID:
    case UWX_ERR_COPYIN_REG:
      return -UNW_EBADREG;
    case UWX_ERR_COPYIN_UTBL:
    case UWX_ERR_COPYIN_UINFO:
    case UWX_ERR_COPYIN_MSTK:
    case UWX_ERR_CANTUNWIND:
      return -UNW_EBADFRAME;
    case UWX_ERR_BADUDESC:
    case UWX_ERR_BADKEY:
      return -UNW_EINVAL;
    default:
      return -UNW_EUNSPEC;
  }
}

int find_proc_info(unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info, void* argument) {
  Environment& environment = environment_of(argument);
  std::memset(info, 0, sizeof *info);
  FrameFacts facts;
  FrameRow row;
  if (const int status = environment.find_row_at(ip, row, facts); status != UWX_OK) return as_libunwind(status);
  if (!facts.has_row) return -UNW_ENOINFO;
  info->start_ip = facts.code.empty() ? ip : facts.code.begin;
  info->end_ip = facts.code.empty() ? ip + 1 : facts.code.end;
  if (!need_unwind_info) return UNW_ESUCCESS;
  const Arch& arch = environment.target();
  if (!write_row_state(row, {ip, ip + arch.unit}, arch, environment.lent_row())) return -UNW_EINVAL;
  mark_as_row(*info, environment.lent_row());
  return UNW_ESUCCESS;
}

int access_mem(unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* argument) {
  Environment& environment = environment_of(argument);
  if (write) return -UNW_EINVAL;
  std::array<std::byte, 8> bytes;
  if (!environment.read_target(at, bytes)) return -UNW_EBADFRAME;
  std::memcpy(value, bytes.data(), sizeof *value);
  if (environment.target().big_endian != (std::endian::native == std::endian::big)) *value = __builtin_bswap64(*value);
  return UNW_ESUCCESS;
}

/// The id of the register; -1: it has none.
int regid_of(const Arch& arch, unw_regnum_t reg) noexcept {
  const RegisterInfo* const info = arch.by_libunwind(reg);
  return info && info->uwx >= 0 ? info->uwx : -1;
}

int access_reg(unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int write, void* argument) {
  Environment& environment = environment_of(argument);
  const int regid = regid_of(environment.target(), reg);
  if (write) return as_libunwind(environment.set_register(regid, *value));
  std::uint64_t words[2] = {};
  const int status = environment.get_register(regid, words);
  *value = words[0];
  return as_libunwind(status);
}

int access_fpreg(unw_addr_space_t, unw_regnum_t reg, unw_fpreg_t* value, int write, void* argument) {
  Environment& environment = environment_of(argument);
  const int regid = regid_of(environment.target(), reg);
  std::uint64_t words[2] = {};
  if (write) {
    std::memcpy(words, value, sizeof words[0]);
    return as_libunwind(environment.set_register(regid, words[0]));
  }
  const int status = environment.get_register(regid, words);
  std::memset(value, 0, sizeof *value);
  std::memcpy(value, words, sizeof words);
  return as_libunwind(status);
}

int get_proc_name(unw_addr_space_t, unw_word_t at, char* buffer, std::size_t size, unw_word_t* offset, void* argument) {
  Environment& environment = environment_of(argument);
  FrameNames names(environment.allocator());
  const int status = names.ask_symbols(environment.callbacks(), CodeAddress::interrupted(at), false, true);
  if (status != UWX_OK) return as_libunwind(status);
  if (!names.symbol()) return -UNW_ENOINFO;
  ProcedureName name;
  write_name(names.symbol(), {buffer, size}, name);
  *offset = names.offset(at);
  return name.truncated ? -UNW_ENOMEM : UNW_ESUCCESS;
}

}  // namespace
}  // namespace jitunwind::uwx

extern "C" {

void uwx_get_accessors(unw_accessors_t* into) {
  using namespace jitunwind::uwx;
  *into = {};
  into->find_proc_info = &find_proc_info;
  into->access_mem = &access_mem;
  into->access_reg = &access_reg;
  into->access_fpreg = &access_fpreg;
  into->get_proc_name = &get_proc_name;
}
}

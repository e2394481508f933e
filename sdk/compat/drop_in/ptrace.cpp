// libunwind-ptrace.so.0: the parts for programs of libunwind 1.6 that differ from libjitunwind-ptrace.
#include <array>

#include "jitunwind/sdk/compat/drop_in/release_1_6_p.h"
#include "jitunwind/sdk/compat/target_p.h"

#include <libunwind-ptrace.h>

extern "C" {
#pragma GCC visibility push(default)

// Programs may have a copy relocation of it, with the size of that release.
jitunwind::release_1_6::Accessors release_1_6_upt_accessors __asm__("_UPT_accessors") = {
    _UPT_find_proc_info, _UPT_put_unwind_info, _UPT_get_dyn_info_list_addr, _UPT_access_mem, _UPT_access_reg,
    _UPT_access_fpreg,   _UPT_resume,          _UPT_get_proc_name,
};

/// Offsets of registers for PTRACE_PEEKUSER, by their numbers.
std::array<int, UNW_REG_LAST + 1> _UPT_reg_offset = [] {
  std::array<int, UNW_REG_LAST + 1> offsets{};
  for (int number = 0; number <= UNW_REG_LAST; ++number)
    if (const auto* const reg = jitunwind::target_arch().by_libunwind(number))
      offsets[static_cast<std::size_t>(number)] = reg->prstatus;  // struct user begins with the registers
  return offsets;
}();

#pragma GCC visibility pop
}

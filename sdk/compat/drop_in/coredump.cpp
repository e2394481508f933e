// libunwind-coredump.so.0: the parts for programs of libunwind 1.6 that differ from libjitunwind-coredump.
#include "jitunwind/sdk/compat/drop_in/release_1_6_p.h"

#include <libunwind-coredump.h>

extern "C" {
#pragma GCC visibility push(default)

// Programs may have a copy relocation of it, with the size of that release.
jitunwind::release_1_6::Accessors release_1_6_ucd_accessors __asm__("_UCD_accessors") = {
    _UCD_find_proc_info, _UCD_put_unwind_info, _UCD_get_dyn_info_list_addr, _UCD_access_mem, _UCD_access_reg,
    _UCD_access_fpreg,   _UCD_resume,          _UCD_get_proc_name,
};

#pragma GCC visibility pop
}

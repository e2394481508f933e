// Functions that only the drop-in libraries call, since those have another function under the usual name.
#pragma once

#include <libunwind.h>

extern "C" {

/// dwarf_search_unwind_table(), which takes another descriptor there.
extern decltype(UNW_OBJ(dwarf_search_unwind_table)) UNW_OBJ(search_unwind_table);

/// unw_get_proc_name(); if no symbol covers the address, the name of the last symbol before it in its section, which is
/// usually that of other code.
extern decltype(unw_get_proc_name) UNW_OBJ(get_nearest_proc_name);
}

// Functions that only the drop-in libraries call, where those have another function under the usual name.
#pragma once

#include <libunwind.h>

extern "C" {

/// dwarf_search_unwind_table(), which takes another descriptor there.
extern decltype(UNW_OBJ(dwarf_search_unwind_table)) UNW_OBJ(search_unwind_table);
}

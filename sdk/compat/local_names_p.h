// Second names for functions of the interface.
#pragma once

#include <libunwind.h>

#define JITUNWIND_TEXT2(x) #x
#define JITUNWIND_TEXT(x) JITUNWIND_TEXT2(x)
#define JITUNWIND_ALIAS(name, of) \
  extern __typeof__(of) name __attribute__((alias(JITUNWIND_TEXT(of)), visibility("default")));

/// The name that programs with UNW_LOCAL_ONLY use.
#define JITUNWIND_LOCAL(name) \
  JITUNWIND_ALIAS(UNW_PASTE(UNW_PASTE(UNW_PASTE(_UL, UNW_TARGET), _), name), UNW_ARCH_OBJ(name))

// Functions that only the drop-in libraries call, since those have another function under the usual name.

extern "C" {

/// dwarf_search_unwind_table(), which takes another descriptor there.
extern decltype(UNW_OBJ(dwarf_search_unwind_table)) UNW_OBJ(search_unwind_table);

/// unw_get_proc_name(); if no symbol covers the address, the name of the last symbol before it in its section, which is
/// usually that of other code.
extern decltype(unw_get_proc_name) UNW_OBJ(get_nearest_proc_name);
}

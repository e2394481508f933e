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

// The names that programs with UNW_LOCAL_ONLY use, for the same functions.
#pragma once

#include <libunwind.h>

#define JITUNWIND_TEXT2(x) #x
#define JITUNWIND_TEXT(x) JITUNWIND_TEXT2(x)
#define JITUNWIND_LOCAL(name)                                                                     \
  extern __typeof__(UNW_ARCH_OBJ(name)) UNW_PASTE(UNW_PASTE(UNW_PASTE(_UL, UNW_TARGET), _), name) \
      __attribute__((alias(JITUNWIND_TEXT(UNW_ARCH_OBJ(name))), visibility("default")));

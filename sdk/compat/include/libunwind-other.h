/* The interface for CPUs that this library only walks through accessors. Included by libunwind-<target>.h, never alone;
   a translation unit has one target. */
#ifndef JITUNWIND_LIBUNWIND_OTHER_H
#define JITUNWIND_LIBUNWIND_OTHER_H

#include <inttypes.h>
#include <stdint.h>

#define _U_TDEP_QP_TRUE 0

/* Words of unw_cursor_t: room for every release's needs, so that a program and the library may be built apart. */
#define UNW_TDEP_CURSOR_LEN 250

/* A word has 8 bytes even for targets with words of 4: descriptions in this process's memory have one layout for every
   CPU. access_mem and access_reg then leave the upper half 0. */
#ifndef JITUNWIND_UNW_WORD_T
#define JITUNWIND_UNW_WORD_T
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
#endif

/* The type has 16 bytes, of which the first 8 are those of a register, in host byte order. Copy it by memcpy: if a long
   double has 10 bytes, as on x86-64, assignments and arguments lose the others. */
typedef long double unw_tdep_fpreg_t;

#define UNW_WORD_MAX UINT64_MAX

/* The type has no size in C and in C++: nothing is stored in it. */
typedef struct unw_tdep_save_loc {
  char unused[0];
} unw_tdep_save_loc_t;

typedef struct {
  char unused[0];
} unw_tdep_proc_info_t;

/* The target's context as bytes, which this library does not read. */
typedef struct {
  unsigned char bytes[JITUNWIND_TDEP_CONTEXT_SIZE];
} unw_tdep_context_t;

#include "libunwind-common.h"

#define unw_tdep_getcontext UNW_ARCH_OBJ(getcontext)
#define unw_tdep_is_fpreg UNW_ARCH_OBJ(is_fpreg)

#ifdef __cplusplus
extern "C" {
#endif

/* Stores the registers of the calling function at the call, and returns 0. Signal-safe. Only the library for the
   present machine has it. */
extern int unw_tdep_getcontext(unw_tdep_context_t* context);

/* Whether reg is a floating-point register. Signal-safe. */
extern int unw_tdep_is_fpreg(int reg);

#ifdef __cplusplus
}
#endif

#endif

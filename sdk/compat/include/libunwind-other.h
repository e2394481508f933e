/* What the interface is on CPUs that this library walks behind accessors alone. Included by libunwind-<target>.h, never
   alone; a translation unit has one target. */
#ifndef JITUNWIND_LIBUNWIND_OTHER_H
#define JITUNWIND_LIBUNWIND_OTHER_H

#include <inttypes.h>
#include <stdint.h>

#define _U_TDEP_QP_TRUE 0

/* Words of unw_cursor_t: room for every release's needs, so that a program and the library may be built apart. */
#define UNW_TDEP_CURSOR_LEN 250

/* 8 bytes also where a target's words have 4: a description in this process's memory is one for every CPU. access_mem
   and access_reg leave the upper half 0 then. */
#ifndef JITUNWIND_UNW_WORD_T
#define JITUNWIND_UNW_WORD_T
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
#endif

/* 16 bytes, the first 8 of which are those of a register, in host byte order. Copied by memcpy: where a long double has
   10, as on x86-64, assignments and arguments lose the others. */
typedef long double unw_tdep_fpreg_t;

#define UNW_WORD_MAX UINT64_MAX

/* Without size in C and in C++: nothing is stored there. */
typedef struct unw_tdep_save_loc {
  char unused[0];
} unw_tdep_save_loc_t;

typedef struct {
  char unused[0];
} unw_tdep_proc_info_t;

/* The target's, as bytes: nothing here reads it. */
typedef struct {
  unsigned char bytes[JITUNWIND_TDEP_CONTEXT_SIZE];
} unw_tdep_context_t;

#include "libunwind-common.h"

#define unw_tdep_getcontext UNW_ARCH_OBJ(getcontext)
#define unw_tdep_is_fpreg UNW_ARCH_OBJ(is_fpreg)

#ifdef __cplusplus
extern "C" {
#endif

/* Registers of the calling function as they are at the call. 0. Signal-safe. Only where the machine is one: libraries
   for other machines do not have it. */
extern int unw_tdep_getcontext(unw_tdep_context_t* context);

/* Whether reg is a floating-point register. Signal-safe. */
extern int unw_tdep_is_fpreg(int reg);

#ifdef __cplusplus
}
#endif

#endif

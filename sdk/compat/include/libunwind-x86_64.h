/* The libunwind interface for x86-64 targets: sizes, types and register numbers. The rest is in libunwind-common.h. */
#ifndef JITUNWIND_LIBUNWIND_X86_64_H
#define JITUNWIND_LIBUNWIND_X86_64_H

#include <inttypes.h>
#include <stdint.h>
#include <ucontext.h>

#define UNW_TARGET x86_64
#define UNW_TARGET_X86_64 1

#define _U_TDEP_QP_TRUE 0

/* Words of unw_cursor_t: room for every release's needs, so that a program and the library may be built apart. */
#define UNW_TDEP_CURSOR_LEN 127

#ifndef JITUNWIND_UNW_WORD_T
#define JITUNWIND_UNW_WORD_T
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
#endif

typedef long double unw_tdep_fpreg_t;

#define UNW_WORD_MAX UINT64_MAX

/* DWARF numbers (AMD64 ABI, figure 3.36). */
typedef enum {
  UNW_X86_64_RAX,
  UNW_X86_64_RDX,
  UNW_X86_64_RCX,
  UNW_X86_64_RBX,
  UNW_X86_64_RSI,
  UNW_X86_64_RDI,
  UNW_X86_64_RBP,
  UNW_X86_64_RSP,
  UNW_X86_64_R8,
  UNW_X86_64_R9,
  UNW_X86_64_R10,
  UNW_X86_64_R11,
  UNW_X86_64_R12,
  UNW_X86_64_R13,
  UNW_X86_64_R14,
  UNW_X86_64_R15,
  UNW_X86_64_RIP,
  UNW_TDEP_LAST_REG = UNW_X86_64_RIP,

  UNW_X86_64_CFA, /* pseudo register: the frame's SP at its call; cannot be written */

  UNW_TDEP_IP = UNW_X86_64_RIP,
  UNW_TDEP_SP = UNW_X86_64_RSP,
  UNW_TDEP_BP = UNW_X86_64_RBP, /* the name of libunwind 1.6 */
  UNW_TDEP_FP = UNW_X86_64_RBP, /* as on all other CPUs */
  UNW_TDEP_EH = UNW_X86_64_RAX
} x86_64_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 2 /* rax, rdx */

typedef struct unw_tdep_save_loc {
  char unused; /* C structures are not empty */
} unw_tdep_save_loc_t;

typedef ucontext_t unw_tdep_context_t;

typedef struct {
  char unused;
} unw_tdep_proc_info_t;

#include "libunwind-common.h"

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_X86_64_CFA

#define unw_tdep_getcontext UNW_ARCH_OBJ(getcontext)
#define unw_tdep_is_fpreg UNW_ARCH_OBJ(is_fpreg)

#ifdef __cplusplus
extern "C" {
#endif

/* Stores the registers of the calling function at the call, and returns 0. Signal-safe. */
extern int unw_tdep_getcontext(unw_tdep_context_t* context);

/* Whether reg is a floating-point register; none is, since they are all scratch. Signal-safe. */
extern int unw_tdep_is_fpreg(int reg);

#ifdef __cplusplus
}
#endif

#endif

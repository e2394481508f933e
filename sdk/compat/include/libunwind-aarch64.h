/* The libunwind interface for AArch64 targets: sizes, types and register numbers. The rest is in libunwind-common.h. On
   other machines its functions are those of libjitunwind-libunwind-aarch64, for targets behind accessors. */
#ifndef JITUNWIND_LIBUNWIND_AARCH64_H
#define JITUNWIND_LIBUNWIND_AARCH64_H

#include <inttypes.h>
#include <stdint.h>

#define UNW_TARGET aarch64
#define UNW_TARGET_AARCH64 1

#define _U_TDEP_QP_TRUE 0

/* Words of unw_cursor_t: room for every release's needs, so that a program and the library may be built apart. */
#define UNW_TDEP_CURSOR_LEN 250

#ifndef JITUNWIND_UNW_WORD_T
#define JITUNWIND_UNW_WORD_T
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
#endif

/* The type has the 16 bytes of a vector register. Copy it by memcpy: if a long double has 10 bytes, as on x86-64,
   assignments and arguments lose the others; unw_set_fpreg takes them for 0. */
typedef long double unw_tdep_fpreg_t;

#define UNW_WORD_MAX UINT64_MAX

/* DWARF numbers (DWARF for the Arm 64-bit Architecture, table 1). */
typedef enum {
  UNW_AARCH64_X0,
  UNW_AARCH64_X1,
  UNW_AARCH64_X2,
  UNW_AARCH64_X3,
  UNW_AARCH64_X4,
  UNW_AARCH64_X5,
  UNW_AARCH64_X6,
  UNW_AARCH64_X7,
  UNW_AARCH64_X8,
  UNW_AARCH64_X9,
  UNW_AARCH64_X10,
  UNW_AARCH64_X11,
  UNW_AARCH64_X12,
  UNW_AARCH64_X13,
  UNW_AARCH64_X14,
  UNW_AARCH64_X15,
  UNW_AARCH64_X16,
  UNW_AARCH64_X17,
  UNW_AARCH64_X18,
  UNW_AARCH64_X19,
  UNW_AARCH64_X20,
  UNW_AARCH64_X21,
  UNW_AARCH64_X22,
  UNW_AARCH64_X23,
  UNW_AARCH64_X24,
  UNW_AARCH64_X25,
  UNW_AARCH64_X26,
  UNW_AARCH64_X27,
  UNW_AARCH64_X28,
  UNW_AARCH64_X29,
  UNW_AARCH64_X30,
  UNW_AARCH64_SP,
  UNW_AARCH64_PC,
  UNW_AARCH64_PSTATE,
  UNW_AARCH64_RA_SIGN_STATE,
  UNW_AARCH64_VG = 46,
  UNW_AARCH64_V0 = 64,
  UNW_AARCH64_V1,
  UNW_AARCH64_V2,
  UNW_AARCH64_V3,
  UNW_AARCH64_V4,
  UNW_AARCH64_V5,
  UNW_AARCH64_V6,
  UNW_AARCH64_V7,
  UNW_AARCH64_V8,
  UNW_AARCH64_V9,
  UNW_AARCH64_V10,
  UNW_AARCH64_V11,
  UNW_AARCH64_V12,
  UNW_AARCH64_V13,
  UNW_AARCH64_V14,
  UNW_AARCH64_V15,
  UNW_AARCH64_V16,
  UNW_AARCH64_V17,
  UNW_AARCH64_V18,
  UNW_AARCH64_V19,
  UNW_AARCH64_V20,
  UNW_AARCH64_V21,
  UNW_AARCH64_V22,
  UNW_AARCH64_V23,
  UNW_AARCH64_V24,
  UNW_AARCH64_V25,
  UNW_AARCH64_V26,
  UNW_AARCH64_V27,
  UNW_AARCH64_V28,
  UNW_AARCH64_V29,
  UNW_AARCH64_V30,
  UNW_AARCH64_V31,
  UNW_AARCH64_FPSR,
  UNW_AARCH64_FPCR,
  UNW_TDEP_LAST_REG = UNW_AARCH64_FPCR,

  UNW_AARCH64_CFA = UNW_AARCH64_SP, /* the frame's SP at its call is its SP */

  UNW_TDEP_IP = UNW_AARCH64_X30, /* in a frame it is the frame's pc, like UNW_AARCH64_PC */
  UNW_TDEP_SP = UNW_AARCH64_SP,
  UNW_TDEP_FP = UNW_AARCH64_X29,
  UNW_TDEP_EH = UNW_AARCH64_X0
} aarch64_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 4 /* x0-x3 */

/* The type has no size in C and in C++: nothing is stored in it. */
typedef struct unw_tdep_save_loc {
  char unused[0];
} unw_tdep_save_loc_t;

typedef struct {
  char unused[0];
} unw_tdep_proc_info_t;

/* The beginning of the kernel's ucontext_t (asm/ucontext.h, asm/sigcontext.h), as far as its floating-point registers.
 */
typedef struct {
  uint64_t uc_flags;
  void* uc_link;
  struct {
    void* ss_sp;
    int32_t ss_flags;
    uint64_t ss_size;
  } uc_stack;
  uint8_t uc_sigmask[128];
  struct {
    uint64_t fault_address;
    uint64_t regs[31];
    uint64_t sp;
    uint64_t pc;
    uint64_t pstate;
    uint8_t fpsimd[66 * 8] __attribute__((__aligned__(16)));
  } uc_mcontext __attribute__((__aligned__(16)));
} unw_tdep_context_t;

#include "libunwind-common.h"

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_AARCH64_CFA

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

/* The libunwind interface for s390x targets: register numbers. The rest is in libunwind-other.h and
   libunwind-common.h. On other machines its functions are those of libjitunwind-libunwind-s390x, for targets behind
   accessors. */
#ifndef JITUNWIND_LIBUNWIND_S390X_H
#define JITUNWIND_LIBUNWIND_S390X_H

#define UNW_TARGET s390x
#define UNW_TARGET_S390X 1

/* These numbers differ from DWARF's, which has the floating-point registers in another order. */
typedef enum {
  /* clang-format off */
  UNW_S390X_R0, UNW_S390X_R1, UNW_S390X_R2, UNW_S390X_R3, UNW_S390X_R4, UNW_S390X_R5, UNW_S390X_R6, UNW_S390X_R7,
  UNW_S390X_R8, UNW_S390X_R9, UNW_S390X_R10, UNW_S390X_R11, UNW_S390X_R12, UNW_S390X_R13, UNW_S390X_R14,
  UNW_S390X_R15,
  UNW_S390X_F0, UNW_S390X_F1, UNW_S390X_F2, UNW_S390X_F3, UNW_S390X_F4, UNW_S390X_F5, UNW_S390X_F6, UNW_S390X_F7,
  UNW_S390X_F8, UNW_S390X_F9, UNW_S390X_F10, UNW_S390X_F11, UNW_S390X_F12, UNW_S390X_F13, UNW_S390X_F14,
  UNW_S390X_F15,
  UNW_S390X_IP, UNW_S390X_CFA,
  /* clang-format on */
  UNW_TDEP_LAST_REG = UNW_S390X_IP,
  UNW_TDEP_IP = UNW_S390X_IP,
  UNW_TDEP_SP = UNW_S390X_R15,
  UNW_TDEP_FP = UNW_S390X_R11,
  UNW_TDEP_EH = UNW_S390X_R6
} s390x_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 4 /* r6-r9 */

/* Bytes of its C library's ucontext_t. */
#define JITUNWIND_TDEP_CONTEXT_SIZE 512

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_S390X_CFA

#include "libunwind-other.h"

#endif

/* The libunwind interface for MIPS targets with 64 bits: register numbers. The rest is in libunwind-other.h and
   libunwind-common.h. On other machines its functions are those of libjitunwind-libunwind-mips, for targets behind
   accessors. */
#ifndef JITUNWIND_LIBUNWIND_MIPS_H
#define JITUNWIND_LIBUNWIND_MIPS_H

#undef mips /* gcc for MIPS defines it */
#define UNW_TARGET mips
#define UNW_TARGET_MIPS 1

/* DWARF's numbers of R0-R31. libunwind has those, and PC. */
typedef enum {
  /* clang-format off */
  UNW_MIPS_R0, UNW_MIPS_R1, UNW_MIPS_R2, UNW_MIPS_R3, UNW_MIPS_R4, UNW_MIPS_R5, UNW_MIPS_R6, UNW_MIPS_R7,
  UNW_MIPS_R8, UNW_MIPS_R9, UNW_MIPS_R10, UNW_MIPS_R11, UNW_MIPS_R12, UNW_MIPS_R13, UNW_MIPS_R14, UNW_MIPS_R15,
  UNW_MIPS_R16, UNW_MIPS_R17, UNW_MIPS_R18, UNW_MIPS_R19, UNW_MIPS_R20, UNW_MIPS_R21, UNW_MIPS_R22, UNW_MIPS_R23,
  UNW_MIPS_R24, UNW_MIPS_R25, UNW_MIPS_R26, UNW_MIPS_R27, UNW_MIPS_R28, UNW_MIPS_R29, UNW_MIPS_R30, UNW_MIPS_R31,
  UNW_MIPS_LO, UNW_MIPS_HI, UNW_MIPS_PC,
  UNW_MIPS_CFA, /* the frame's SP at its call is its SP */
  UNW_MIPS_F0, UNW_MIPS_F1, UNW_MIPS_F2, UNW_MIPS_F3, UNW_MIPS_F4, UNW_MIPS_F5, UNW_MIPS_F6, UNW_MIPS_F7,
  UNW_MIPS_F8, UNW_MIPS_F9, UNW_MIPS_F10, UNW_MIPS_F11, UNW_MIPS_F12, UNW_MIPS_F13, UNW_MIPS_F14, UNW_MIPS_F15,
  UNW_MIPS_F16, UNW_MIPS_F17, UNW_MIPS_F18, UNW_MIPS_F19, UNW_MIPS_F20, UNW_MIPS_F21, UNW_MIPS_F22, UNW_MIPS_F23,
  UNW_MIPS_F24, UNW_MIPS_F25, UNW_MIPS_F26, UNW_MIPS_F27, UNW_MIPS_F28, UNW_MIPS_F29, UNW_MIPS_F30, UNW_MIPS_F31,
  /* clang-format on */
  UNW_TDEP_LAST_REG = UNW_MIPS_F31,
  UNW_TDEP_IP = UNW_MIPS_PC,
  UNW_TDEP_SP = UNW_MIPS_R29,
  UNW_TDEP_FP = UNW_MIPS_R30,
  UNW_TDEP_EH = UNW_MIPS_R4
} mips_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 4 /* a0-a3 */

/* Bytes of its C library's ucontext_t. */
#define JITUNWIND_TDEP_CONTEXT_SIZE 768

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_MIPS_CFA

#include "libunwind-other.h"

#endif

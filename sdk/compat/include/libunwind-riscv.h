/* The libunwind interface for RISC-V targets with 64 bits: register numbers. The rest is in libunwind-other.h and
   libunwind-common.h. On other machines its functions are those of libjitunwind-libunwind-riscv, for targets behind
   accessors. */
#ifndef JITUNWIND_LIBUNWIND_RISCV_H
#define JITUNWIND_LIBUNWIND_RISCV_H

#define UNW_TARGET riscv
#define UNW_TARGET_RISCV 1

/* DWARF numbers (RISC-V psABI, "DWARF register numbers"). */
typedef enum {
  /* clang-format off */
  UNW_RISCV_X0, UNW_RISCV_X1, UNW_RISCV_X2, UNW_RISCV_X3, UNW_RISCV_X4, UNW_RISCV_X5, UNW_RISCV_X6, UNW_RISCV_X7,
  UNW_RISCV_X8, UNW_RISCV_X9, UNW_RISCV_X10, UNW_RISCV_X11, UNW_RISCV_X12, UNW_RISCV_X13, UNW_RISCV_X14,
  UNW_RISCV_X15, UNW_RISCV_X16, UNW_RISCV_X17, UNW_RISCV_X18, UNW_RISCV_X19, UNW_RISCV_X20, UNW_RISCV_X21,
  UNW_RISCV_X22, UNW_RISCV_X23, UNW_RISCV_X24, UNW_RISCV_X25, UNW_RISCV_X26, UNW_RISCV_X27, UNW_RISCV_X28,
  UNW_RISCV_X29, UNW_RISCV_X30, UNW_RISCV_X31,
  UNW_RISCV_F0, UNW_RISCV_F1, UNW_RISCV_F2, UNW_RISCV_F3, UNW_RISCV_F4, UNW_RISCV_F5, UNW_RISCV_F6, UNW_RISCV_F7,
  UNW_RISCV_F8, UNW_RISCV_F9, UNW_RISCV_F10, UNW_RISCV_F11, UNW_RISCV_F12, UNW_RISCV_F13, UNW_RISCV_F14,
  UNW_RISCV_F15, UNW_RISCV_F16, UNW_RISCV_F17, UNW_RISCV_F18, UNW_RISCV_F19, UNW_RISCV_F20, UNW_RISCV_F21,
  UNW_RISCV_F22, UNW_RISCV_F23, UNW_RISCV_F24, UNW_RISCV_F25, UNW_RISCV_F26, UNW_RISCV_F27, UNW_RISCV_F28,
  UNW_RISCV_F29, UNW_RISCV_F30, UNW_RISCV_F31,
  UNW_RISCV_PC,
  /* clang-format on */
  UNW_RISCV_CFA = UNW_RISCV_X2, /* the frame's SP at its call is its SP */
  UNW_TDEP_LAST_REG = UNW_RISCV_PC,
  UNW_TDEP_IP = UNW_RISCV_PC,
  UNW_TDEP_SP = UNW_RISCV_X2,
  UNW_TDEP_FP = UNW_RISCV_X8,
  UNW_TDEP_EH = UNW_RISCV_X10
} riscv_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 4 /* a0-a3 */

/* Bytes of its C library's ucontext_t. */
#define JITUNWIND_TDEP_CONTEXT_SIZE 960

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_RISCV_X2

#include "libunwind-other.h"

#endif

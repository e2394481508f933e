/* The libunwind interface for x86 targets with 32 bits: register numbers. The rest is in libunwind-other.h and
   libunwind-common.h. On other machines its functions are those of libjitunwind-libunwind-x86, for targets behind
   accessors. */
#ifndef JITUNWIND_LIBUNWIND_X86_H
#define JITUNWIND_LIBUNWIND_X86_H

#define UNW_TARGET x86
#define UNW_TARGET_X86 1

/* These numbers differ from DWARF's. */
typedef enum {
  /* clang-format off */
  UNW_X86_EAX, UNW_X86_EDX, UNW_X86_ECX, UNW_X86_EBX, UNW_X86_ESI, UNW_X86_EDI, UNW_X86_EBP, UNW_X86_ESP, UNW_X86_EIP,
  UNW_X86_EFLAGS, UNW_X86_TRAPNO,
  UNW_X86_ST0, UNW_X86_ST1, UNW_X86_ST2, UNW_X86_ST3, UNW_X86_ST4, UNW_X86_ST5, UNW_X86_ST6, UNW_X86_ST7,
  UNW_X86_FCW, UNW_X86_FSW, UNW_X86_FTW, UNW_X86_FOP, UNW_X86_FCS, UNW_X86_FIP, UNW_X86_FEA, UNW_X86_FDS,
  UNW_X86_XMM0_lo, UNW_X86_XMM0_hi, UNW_X86_XMM1_lo, UNW_X86_XMM1_hi, UNW_X86_XMM2_lo, UNW_X86_XMM2_hi,
  UNW_X86_XMM3_lo, UNW_X86_XMM3_hi, UNW_X86_XMM4_lo, UNW_X86_XMM4_hi, UNW_X86_XMM5_lo, UNW_X86_XMM5_hi,
  UNW_X86_XMM6_lo, UNW_X86_XMM6_hi, UNW_X86_XMM7_lo, UNW_X86_XMM7_hi,
  UNW_X86_MXCSR, UNW_X86_GS, UNW_X86_FS, UNW_X86_ES, UNW_X86_DS, UNW_X86_SS, UNW_X86_CS, UNW_X86_TSS, UNW_X86_LDT,
  UNW_X86_CFA,
  UNW_X86_XMM0, UNW_X86_XMM1, UNW_X86_XMM2, UNW_X86_XMM3, UNW_X86_XMM4, UNW_X86_XMM5, UNW_X86_XMM6, UNW_X86_XMM7,
  /* clang-format on */
  UNW_TDEP_LAST_REG = UNW_X86_XMM7,
  UNW_TDEP_IP = UNW_X86_EIP,
  UNW_TDEP_SP = UNW_X86_ESP,
  UNW_TDEP_FP = UNW_X86_EBP,
  UNW_TDEP_EH = UNW_X86_EAX
} x86_regnum_t;

#define UNW_TDEP_NUM_EH_REGS 2 /* eax, edx */

/* Bytes of its C library's ucontext_t. */
#define JITUNWIND_TDEP_CONTEXT_SIZE 364

/* The number of the CFA pseudo register; only the library uses it. */
#define JITUNWIND_TDEP_CFA UNW_X86_CFA

#include "libunwind-other.h"

#endif

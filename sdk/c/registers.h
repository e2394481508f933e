/* Every register of every CPU, by its name in the CPU's table. Written from unwind_core/arch by
   tests/c_interface/write_registers.cpp; a test compares. */
#ifndef JITUNWIND_SDK_C_REGISTERS_H
#define JITUNWIND_SDK_C_REGISTERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A CPU, by its number in ELF files. */
typedef enum ju_cpu {
  JU_CPU_HOST = 0, /**< the one that this process runs on */
  JU_CPU_X86_64 = 62,
  JU_CPU_AARCH64 = 183,
  JU_CPU_ANY = 0x7fffffff
} ju_cpu;

/** A register: its CPU's number in the upper half, its DWARF number in the lower. A register of one CPU is refused
    where code of another one is described. */
typedef uint32_t ju_reg;

enum {
  /* x86-64 */
  JU_X86_64_RAX = 0x3e0000,
  JU_X86_64_RDX = 0x3e0001,
  JU_X86_64_RCX = 0x3e0002,
  JU_X86_64_RBX = 0x3e0003,
  JU_X86_64_RSI = 0x3e0004,
  JU_X86_64_RDI = 0x3e0005,
  JU_X86_64_RBP = 0x3e0006,
  JU_X86_64_RSP = 0x3e0007,
  JU_X86_64_R8 = 0x3e0008,
  JU_X86_64_R9 = 0x3e0009,
  JU_X86_64_R10 = 0x3e000a,
  JU_X86_64_R11 = 0x3e000b,
  JU_X86_64_R12 = 0x3e000c,
  JU_X86_64_R13 = 0x3e000d,
  JU_X86_64_R14 = 0x3e000e,
  JU_X86_64_R15 = 0x3e000f,
  JU_X86_64_RIP = 0x3e0010,
  JU_X86_64_XMM0 = 0x3e0011,
  JU_X86_64_XMM1 = 0x3e0012,
  JU_X86_64_XMM2 = 0x3e0013,
  JU_X86_64_XMM3 = 0x3e0014,
  JU_X86_64_XMM4 = 0x3e0015,
  JU_X86_64_XMM5 = 0x3e0016,
  JU_X86_64_XMM6 = 0x3e0017,
  JU_X86_64_XMM7 = 0x3e0018,
  JU_X86_64_XMM8 = 0x3e0019,
  JU_X86_64_XMM9 = 0x3e001a,
  JU_X86_64_XMM10 = 0x3e001b,
  JU_X86_64_XMM11 = 0x3e001c,
  JU_X86_64_XMM12 = 0x3e001d,
  JU_X86_64_XMM13 = 0x3e001e,
  JU_X86_64_XMM14 = 0x3e001f,
  JU_X86_64_XMM15 = 0x3e0020,
  /* aarch64 */
  JU_AARCH64_X0 = 0xb70000,
  JU_AARCH64_X1 = 0xb70001,
  JU_AARCH64_X2 = 0xb70002,
  JU_AARCH64_X3 = 0xb70003,
  JU_AARCH64_X4 = 0xb70004,
  JU_AARCH64_X5 = 0xb70005,
  JU_AARCH64_X6 = 0xb70006,
  JU_AARCH64_X7 = 0xb70007,
  JU_AARCH64_X8 = 0xb70008,
  JU_AARCH64_X9 = 0xb70009,
  JU_AARCH64_X10 = 0xb7000a,
  JU_AARCH64_X11 = 0xb7000b,
  JU_AARCH64_X12 = 0xb7000c,
  JU_AARCH64_X13 = 0xb7000d,
  JU_AARCH64_X14 = 0xb7000e,
  JU_AARCH64_X15 = 0xb7000f,
  JU_AARCH64_X16 = 0xb70010,
  JU_AARCH64_X17 = 0xb70011,
  JU_AARCH64_X18 = 0xb70012,
  JU_AARCH64_X19 = 0xb70013,
  JU_AARCH64_X20 = 0xb70014,
  JU_AARCH64_X21 = 0xb70015,
  JU_AARCH64_X22 = 0xb70016,
  JU_AARCH64_X23 = 0xb70017,
  JU_AARCH64_X24 = 0xb70018,
  JU_AARCH64_X25 = 0xb70019,
  JU_AARCH64_X26 = 0xb7001a,
  JU_AARCH64_X27 = 0xb7001b,
  JU_AARCH64_X28 = 0xb7001c,
  JU_AARCH64_X29 = 0xb7001d,
  JU_AARCH64_X30 = 0xb7001e,
  JU_AARCH64_SP = 0xb7001f,
  JU_AARCH64_PC = 0xb70020,
  JU_AARCH64_RA_SIGN_STATE = 0xb70022,
  JU_AARCH64_V0 = 0xb70040,
  JU_AARCH64_V1 = 0xb70041,
  JU_AARCH64_V2 = 0xb70042,
  JU_AARCH64_V3 = 0xb70043,
  JU_AARCH64_V4 = 0xb70044,
  JU_AARCH64_V5 = 0xb70045,
  JU_AARCH64_V6 = 0xb70046,
  JU_AARCH64_V7 = 0xb70047,
  JU_AARCH64_V8 = 0xb70048,
  JU_AARCH64_V9 = 0xb70049,
  JU_AARCH64_V10 = 0xb7004a,
  JU_AARCH64_V11 = 0xb7004b,
  JU_AARCH64_V12 = 0xb7004c,
  JU_AARCH64_V13 = 0xb7004d,
  JU_AARCH64_V14 = 0xb7004e,
  JU_AARCH64_V15 = 0xb7004f,
  JU_AARCH64_V16 = 0xb70050,
  JU_AARCH64_V17 = 0xb70051,
  JU_AARCH64_V18 = 0xb70052,
  JU_AARCH64_V19 = 0xb70053,
  JU_AARCH64_V20 = 0xb70054,
  JU_AARCH64_V21 = 0xb70055,
  JU_AARCH64_V22 = 0xb70056,
  JU_AARCH64_V23 = 0xb70057,
  JU_AARCH64_V24 = 0xb70058,
  JU_AARCH64_V25 = 0xb70059,
  JU_AARCH64_V26 = 0xb7005a,
  JU_AARCH64_V27 = 0xb7005b,
  JU_AARCH64_V28 = 0xb7005c,
  JU_AARCH64_V29 = 0xb7005d,
  JU_AARCH64_V30 = 0xb7005e,
  JU_AARCH64_V31 = 0xb7005f,

  JU_NO_REG = 0 /**< no register */
};

/** The CPU that this process runs on; JU_CPU_HOST where the library has no table for it. Thread-safe, signal-safe. */
ju_cpu ju_host_cpu(void);
/** A register that is chosen at run time, by its DWARF number; JU_NO_REG of an unknown CPU. ju_build() refuses numbers
    that the CPU does not have. Thread-safe, signal-safe. */
ju_reg ju_register_number(ju_cpu cpu, uint16_t dwarf);
/** A register by its name, "rbp"; "ra" is the return address column. JU_NO_REG: there is none. Thread-safe,
    signal-safe. */
ju_reg ju_register_by_name(ju_cpu cpu, const char* name);
/** The name of a register, "rbp"; "" of what is no register. Never null. Thread-safe, signal-safe. */
const char* ju_register_name(ju_reg reg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

// Prints sdk/c/registers.h as the CPUs' tables have it.
#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>

#include "jitunwind/unwind_core/arch/arch.h"

namespace {

/// "X86_64" of "x86-64".
std::string upper(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

constexpr const char* k_begin =
    R"(/* Every register of every CPU, by its name in the CPU's table. Written from unwind_core/arch by
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
  JU_CPU_HOST = 0, /**< the CPU of this process */
)";
constexpr const char* k_register = R"(  JU_CPU_ANY = 0x7fffffff
} ju_cpu;

/** A register: its CPU's number in the upper half, its DWARF number in the lower. Functions that describe code
    of one CPU refuse a register of another one. */
typedef uint32_t ju_reg;

enum {
  /* clang-format off */
)";
constexpr const char* k_end = R"(  /* clang-format on */
  JU_NO_REG = 0 /**< no register */
};

/** The general register that instructions of x86-64 name by `encoding`: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, and r8
    to r15. JIT compilers have these numbers; DWARF's are others. On AArch64 both are the same. */
#define JU_X86_64_GENERAL(encoding) ((ju_reg)(JU_X86_64_RAX | (0xfedcba9854673120u >> 4 * ((encoding)&15) & 15)))

/** The CPU of this process; JU_CPU_HOST if the library has no table for it. Thread-safe, signal-safe. */
ju_cpu ju_host_cpu(void);
/** A register that is chosen at run time, by its DWARF number; JU_NO_REG for an unknown CPU. ju_build() refuses numbers
    that the CPU does not have. Thread-safe, signal-safe. */
ju_reg ju_register_number(ju_cpu cpu, uint16_t dwarf);
/** A register by its name, "rbp"; "ra" is the return address column. JU_NO_REG: there is none. Thread-safe,
    signal-safe. */
ju_reg ju_register_by_name(ju_cpu cpu, const char* name);
/** The name of a register, "rbp"; "" for any other number. Never null. Thread-safe, signal-safe. */
const char* ju_register_name(ju_reg reg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
)";

}  // namespace

int main() {
  std::fputs(k_begin, stdout);
  for (const jitunwind::Arch* const arch : jitunwind::all_arches()) {
    std::printf("  JU_CPU_%s = %u,\n", upper(arch->name).c_str(), unsigned{arch->elf_machine});
  }
  std::fputs(k_register, stdout);
  for (const jitunwind::Arch* const arch : jitunwind::all_arches()) {
    std::printf("  /* %s */\n", arch->name);
    std::string line = " ";
    for (const jitunwind::RegisterInfo& reg : arch->registers) {
      char text[64];
      std::snprintf(text, sizeof text, " JU_%s_%s = 0x%x,", upper(arch->name).c_str(), upper(reg.name).c_str(),
                    unsigned{arch->elf_machine} << 16 | reg.dwarf);
      if (line.size() + std::string_view(text).size() > 120) {
        std::puts(line.c_str());
        line = " ";
      }
      line += text;
    }
    std::puts(line.c_str());
  }
  std::fputs(k_end, stdout);
}

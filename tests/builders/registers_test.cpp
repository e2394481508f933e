// The constants of registers in C++ and in C, by the numbers of instructions.
#include <gtest/gtest.h>

#include "jitunwind/builders/every_cpu.h"
#include "jitunwind/sdk/c/registers.h"

namespace jitunwind {
namespace {

/// The order is that of Intel's manual, volume 2, "Encodings of Register Operands".
constexpr const char* k_by_encoding[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                         "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

TEST(BuilderRegisters, OfX8664AreFoundByTheirEncodings) {
  for (unsigned encoding = 0; encoding < 16; ++encoding) {
    const RegisterInfo* const named = arch::x86_64.by_name(k_by_encoding[encoding]);
    ASSERT_NE(named, nullptr);
    EXPECT_EQ(x86_64::general(encoding).dwarf(), named->dwarf) << named->name;
    EXPECT_EQ(JU_X86_64_GENERAL(encoding), ju_register_by_name(JU_CPU_X86_64, named->name)) << named->name;
  }
}

TEST(BuilderRegisters, CpuTagsLeadToTheirTables) {
#define JITUNWIND_ARCH(identifier) EXPECT_EQ(&identifier::Cpu::arch(), &arch::identifier);
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
}

}  // namespace
}  // namespace jitunwind

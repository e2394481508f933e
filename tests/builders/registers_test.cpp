// The constants of builders/registers_<cpu>.h are the CPU tables' registers, all of them, under the same names.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "jitunwind/builders/every_cpu.h"
#include "jitunwind/sdk/c/registers.h"
#include "tests/support/texts.h"

namespace jitunwind {
namespace {

/// "x86-64" is the namespace x86_64 and the file registers_x86_64.h.
std::string text_of_header(const std::string& identifier) {
  std::string text;
  for (const char* const folder : {"/builders/registers_", "/builders/other_cpus/registers_"})
    text += test::text_of_file(JITUNWIND_SOURCE_DIR + std::string(folder) + identifier + ".h");
  return text;
}

/// Name -> number of every "inline constexpr Reg a{1}, b{2};".
std::map<std::string, unsigned> constants_in(const std::string& header) {
  const std::string head = "inline constexpr Reg ";
  std::map<std::string, unsigned> constants;
  for (std::size_t at = header.find(head); at != std::string::npos; at = header.find(head, at)) {
    at += head.size();
    std::istringstream list(header.substr(at, header.find(';', at) - at));
    std::string name;
    unsigned number = 0;
    char bracket = 0;
    char comma = 0;
    while (std::getline(list >> std::ws, name, '{') && list >> number >> bracket) {
      constants[name] = number;
      list >> comma;
    }
  }
  return constants;
}

TEST(BuilderRegisters, AreThoseOfTheTables) {
  const auto expect_same = [](const std::string& identifier, const Arch& arch) {
    std::map<std::string, unsigned> in_table;
    for (const RegisterInfo& r : arch.registers) in_table[r.name] = r.dwarf;
    EXPECT_EQ(constants_in(text_of_header(identifier)), in_table) << identifier << ": builders/registers_*.h differs";
  };
#define JITUNWIND_ARCH(identifier) expect_same(#identifier, arch::identifier);
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
}

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

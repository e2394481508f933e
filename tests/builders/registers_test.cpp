// The constants of builders/registers_<cpu>.h are the CPU tables' registers, all of them, under the same names.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"

namespace jitunwind {
namespace {

/// "x86-64" is the namespace x86_64 and the file registers_x86_64.h.
std::string text_of_header(const Arch& arch) {
  std::string identifier = arch.name;
  std::replace(identifier.begin(), identifier.end(), '-', '_');
  std::ifstream file(std::string(JITUNWIND_SOURCE_DIR) + "/builders/registers_" + identifier + ".h");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
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
  ASSERT_FALSE(all_arches().empty());
  for (const Arch* arch : all_arches()) {
    std::map<std::string, unsigned> in_table;
    for (const RegisterInfo& r : arch->registers) in_table[r.name] = r.dwarf;
    EXPECT_EQ(constants_in(text_of_header(*arch)), in_table) << arch->name << ": builders/registers_*.h differs";
  }
}

TEST(BuilderRegisters, CpuTagsLeadToTheirTables) {
  EXPECT_EQ(&x86_64::Cpu::arch(), &arch::x86_64);
  EXPECT_EQ(&aarch64::Cpu::arch(), &arch::aarch64);
}

}  // namespace
}  // namespace jitunwind

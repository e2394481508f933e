// The headers and libraries of all other CPUs in one program, beside this machine's.
#include <endian.h>
#include <gtest/gtest.h>
#include <libunwind.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/address_spaces/one_cpu.h"

namespace jitunwind::test {
namespace {

/// Returns the CPUs that the program is linked with: LINKED_CPUS is "one_cpu_arm(), one_cpu_riscv(), ".
std::vector<OneCpu> others() { return {LINKED_CPUS}; }

int order_of(bool big_endian) { return big_endian ? __BIG_ENDIAN : __LITTLE_ENDIAN; }

// covers: XP01 XP05 XP06 RG10
TEST(AllCpus, HeadersSayWhatTheTablesSay) {
  EXPECT_EQ(others().size() + 1, all_arches().size());
  for (const OneCpu& cpu : others()) {
    EXPECT_EQ(cpu.wrong_numbers, "") << cpu.target;
    EXPECT_EQ(cpu.version, UNW_VERSION) << cpu.target;
  }
}

// covers: XP03 LU06
TEST(AllCpus, NoneOfThemIsThisProcess) {
  for (const OneCpu& cpu : others()) {
    EXPECT_EQ(cpu.init_local, -UNW_EINVAL) << cpu.target;
    EXPECT_EQ(cpu.init_local2, -UNW_EINVAL) << cpu.target;
  }
}

// covers: XP01 XP04 AS03 DY48
TEST(AllCpus, AreWalkedInEachByteOrder) {
  for (const OneCpu& cpu : others())
    for (const bool big_endian : {false, true}) {
      const bool exists = big_endian == cpu.arch->big_endian || cpu.arch->bi_endian;
      EXPECT_EQ(cpu.walk(big_endian, order_of(big_endian)), exists ? "" : "no such space")
          << cpu.target << (big_endian ? " big" : " little");
    }
}

/// 0 asks for the order that the CPU's programs usually have, and is no other one.
// covers: AS03
TEST(AllCpus, HaveAnOrderOfTheirOwn) {
  for (const OneCpu& cpu : others()) {
    const bool is_big = cpu.target == std::string("ppc64") || cpu.target == std::string("s390x");
    EXPECT_EQ(cpu.walk(is_big, 0), "") << cpu.target;
    EXPECT_NE(cpu.walk(!is_big, 0), "") << cpu.target;
  }
}

/// The knowledge of one target's walk is not used for another target, whoever walks meanwhile.
// covers: XP02
TEST(AllCpus, AreWalkedAtTheSameTime) {
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (std::string& mine : wrong)
    threads.emplace_back([&mine] {
      for (int round = 0; round < 50; ++round)
        for (const OneCpu& cpu : others()) mine += cpu.walk(cpu.arch->big_endian, 0);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mine : wrong) EXPECT_EQ(mine, "");
}

}  // namespace
}  // namespace jitunwind::test

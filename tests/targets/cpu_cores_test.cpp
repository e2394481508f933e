// Core files of other CPUs, of either byte order and word size, which qemu-user has written for cores/crashing.c.
// Beside them is GDB's view of them, which cores/record has asked for.
#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/texts.h"
#include "tests/targets/recorded_cores.h"

namespace jitunwind::test {
namespace {

using Reason = TargetError::Reason;

struct NamedFrame {
  Addr pc = 0;
  std::string name{};
};

/// Returns the frames that GDB printed, up to the first without a name. GDB does not know described code.
std::vector<NamedFrame> frames_of_gdb(const std::string& name) {
  std::vector<NamedFrame> frames;
  for (const std::string& line : lines_of(text_of_file(CORES "/" + name + ".gdb"))) {
    std::istringstream words(line);
    NamedFrame frame;
    if (line != "signal") words >> std::hex >> frame.pc >> frame.name;
    if (frame.name == "code_room" || frame.name == "??") break;
    frames.push_back(frame);
  }
  return frames;
}

class CoreOfCpu : public testing::TestWithParam<Recorded> {};

INSTANTIATE_TEST_SUITE_P(Cpus, CoreOfCpu, testing::ValuesIn(k_recorded),
                         [](const auto& info) { return std::string(info.param.name); });

// covers: HL12 XP04 DY48
TEST_P(CoreOfCpu, ShowsItsStackThroughASignalHandlerAndDescribedCode) {
  const Unpacked files(GetParam().name);
  const auto core = files.open();
  ASSERT_TRUE(core) << core.error().text();
  EXPECT_STREQ(core->arch().name, GetParam().cpu);
  EXPECT_EQ(core->arch().big_endian, GetParam().big_endian);
  ASSERT_EQ(core->threads().size(), 1u);
  EXPECT_EQ(core->threads()[0].signal, SIGABRT);
  EXPECT_EQ(core->threads()[0].name, GetParam().name);
  std::vector<std::string> names, origins;
  for (const Frame& frame : core->walk(core->threads()[0])) {
    if (names.size() == 10) break;  // nobody has called _start()
    names.push_back(frame.name());
    if (frame.origin() == RowOrigin::signal_frame || frame.origin() == RowOrigin::dyn_directives)
      origins.push_back(std::to_string(frame.depth()) + " " + origin_name(frame.origin()));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"give_up", "handle_fault", "", "innermost", "middle", "described_plain",
                                             "between", "described_framed", "outermost", "_start"}));
  EXPECT_EQ(origins, (std::vector<std::string>{"2 signal_frame", "5 dyn_directives", "7 dyn_directives"}));
}

// covers: XP04
TEST_P(CoreOfCpu, ShowsWhatGdbSees) {
  const std::vector<NamedFrame> seen = frames_of_gdb(GetParam().name);
  ASSERT_GE(seen.size(), 2u);
  const Unpacked files(GetParam().name);
  const auto core = files.open();
  ASSERT_TRUE(core) << core.error().text();
  std::size_t known = 0;
  for (const Frame& frame : core->walk(core->threads()[0])) {
    if (known == seen.size()) break;
    const NamedFrame& gdb = seen[known++];
    if (gdb.name.empty()) {
      EXPECT_EQ(frame.origin(), RowOrigin::signal_frame);
    } else {
      EXPECT_EQ(frame.pc(), gdb.pc) << gdb.name;
      EXPECT_EQ(frame.name(), gdb.name);
    }
  }
  EXPECT_EQ(known, seen.size());
}

/// qemu leaves out the first page of the program with its headers, and on most CPUs its code: only the program tells
/// the layout.
TEST_P(CoreOfCpu, EndsWithAReasonWithoutItsProgram) {
  const Unpacked files(GetParam().name);
  const auto whole = files.open(), core = Target::open_core(files.core);
  ASSERT_TRUE(whole) << whole.error().text();
  ASSERT_TRUE(core) << core.error().text();
  std::vector<Addr> all, some;
  for (const Frame& frame : whole->walk(whole->threads()[0])) all.push_back(frame.pc());
  Walk walk = core->walk(core->threads()[0]);
  for (const Frame& frame : walk) some.push_back(frame.pc());
  EXPECT_FALSE(walk.why().empty());
  ASSERT_LE(some.size(), all.size());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

constexpr std::size_t k_machine = 18;

/// Returns the error for a core whose header has another byte at `at`.
std::string error_with(const std::string& core, std::size_t at, char byte) {
  std::fstream(core, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(at)).put(byte);
  const auto target = Target::open_core(core);
  EXPECT_FALSE(target);
  return target ? "" : target.error().text();
}

// covers: XP04
TEST(CoreOfCpu, IsRefusedByTheNameOfItsCpuWhereTheHeaderContradictsIt) {
  const Unpacked of_32("x86"), of_64("s390x"), unknown("aarch64");
  std::string text = error_with(of_32.core, k_machine, EM_S390);
  EXPECT_NE(text.find("s390x with pointers of 32 bits"), std::string::npos) << text;
  EXPECT_NE(text.find("s390x (64 bits)"), std::string::npos) << text;
  text = error_with(of_64.core, k_machine + 1, EM_386);
  EXPECT_NE(text.find("x86 with pointers of 64 bits"), std::string::npos) << text;
  text = error_with(unknown.core, k_machine, EM_68K);
  EXPECT_NE(text.find("ELF number 4"), std::string::npos) << text;
}

TEST(CoreOfCpu, RefusesAProgramOfAnotherByteOrder) {
  const Unpacked big("armeb"), little("arm");
  const auto core = Target::open_core(big.core, {.root = "", .program = little.program});
  ASSERT_FALSE(core);
  EXPECT_EQ(core.error().reason, Reason::core_of_other_program) << core.error().text();
}

}  // namespace
}  // namespace jitunwind::test

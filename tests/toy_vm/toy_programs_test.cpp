// The programs toy_vm and toy_vm_eh: the whole output and exit status of every script of the examples, on libgcc_s and
// on the exception runtime of this project.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace {

using jitunwind::test::Pattern;

namespace fs = std::filesystem;

const fs::path k_scripts = JITUNWIND_SOURCE_DIR "/examples/toy_vm/scripts";
const fs::path k_expected = JITUNWIND_SOURCE_DIR "/tests/toy_vm/expected";
constexpr std::array k_programs{TOY_VM, TOY_VM_EH};

/// Returns the program's output, errors included, and a last line "exit 0".
std::string run(const std::string& program, const std::string& arguments) {
  const jitunwind::test::Ended ended = jitunwind::test::run(program + " " + arguments);
  return ended.text + "exit " + std::to_string(ended.status) + "\n";
}

std::vector<std::string> stems(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().stem().string());
  return {found.begin(), found.end()};
}

TEST(ToyPrograms, EveryScriptHasItsExpectedOutput) {
  ASSERT_GE(stems(k_scripts).size(), 7u);
  EXPECT_EQ(stems(k_scripts), stems(k_expected));
}

/// The compiler of the machine determines how deep a stack is.
std::string without_counts(const std::string& output) {
  static const Pattern count(R"(\.\.\. \d+ more)");
  return replaced(output, count, "... many more");
}

class ToyScript : public testing::TestWithParam<std::string> {};

// covers: EX03 EX14
TEST_P(ToyScript, PrintsAsExpected) {
  const std::string arguments = GetParam() == "arguments" ? " 12 30" : "";
  const std::string script = (k_scripts / (GetParam() + ".toy")).string();
  const std::string expected = jitunwind::test::text_of_file(k_expected / (GetParam() + ".txt"));
  for (const char* program : k_programs)
    EXPECT_EQ(without_counts(run(program, script + arguments)), expected) << program;
}

INSTANTIATE_TEST_SUITE_P(All, ToyScript, testing::ValuesIn(stems(k_scripts)),
                         [](const auto& info) { return info.param; });

TEST(ToyPrograms, SayWhatTheyCannotRun) {
  const std::string folder = testing::TempDir() + "toy_programs_test";
  const std::string script = folder + "/bad.toy";
  fs::create_directories(folder);
  std::ofstream(script) << "fn main() {\n  print(1);\n  print(x);\n}\n";
  for (const char* program : k_programs) {
    EXPECT_EQ(run(program, ""), "usage: toy_vm SCRIPT [ARGUMENT...]\nexit 2\n");
    EXPECT_EQ(run(program, folder + "/none.toy"),
              "toy_vm: cannot read " + folder + "/none.toy: No such file or directory\nexit 2\n");
    EXPECT_EQ(run(program, folder), "toy_vm: cannot read " + folder + ": Is a directory\nexit 2\n");
    EXPECT_EQ(run(program, script), script + ":3: unknown name 'x'\nexit 2\n");
    EXPECT_EQ(run(program, (k_scripts / "arguments.toy").string() + " 12"),
              "uncaught: 'main' takes 2 arguments, not 1\nexit 1\n");
  }
  fs::remove_all(folder);
}

}  // namespace

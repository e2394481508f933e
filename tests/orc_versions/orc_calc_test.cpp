// The example orc_calc: what its programs print, and what it says of those that it cannot run. The environment's
// ORC_CALC is another one than the example of this build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "examples/orc_calc/syntax.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

namespace fs = std::filesystem;

const fs::path k_scripts = JITUNWIND_SOURCE_DIR "/examples/orc_calc/scripts";
const fs::path k_expected = JITUNWIND_SOURCE_DIR "/tests/orc_versions/expected";

std::string orc_calc() {
  const char* const other = std::getenv("ORC_CALC");
  return other ? other : ORC_CALC;
}

/// Output and exit status. How deep a full stack is depends on the compiler.
std::string output_of_calc(const std::string& arguments) {
  static const Pattern count(R"(\.\.\. \d+ more)");
  const Ended ended = run(orc_calc() + " " + arguments);
  return replaced(ended.text, count, "... many more") + "exit " + std::to_string(ended.status) + "\n";
}

class OrcCalcScript : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, OrcCalcScript, testing::Values("functions", "exceptions", "trace", "overflow"),
                         [](const auto& script) { return script.param; });

// covers: DY46 EX14
TEST_P(OrcCalcScript, PrintsAsExpected) {
  const std::string script = (k_scripts / (std::string(GetParam()) + ".calc")).string();
  EXPECT_EQ(output_of_calc(script), text_of_file(k_expected / (std::string(GetParam()) + ".txt")));
}

#if ORC_CALC_HAS_ASMJIT
TEST(OrcCalc, HasFramesOfTwoCodeGeneratorsOnOneStack) {
  EXPECT_EQ(output_of_calc("--asmjit " + (k_scripts / "trace.calc").string()),
            text_of_file(k_expected / "trace_asmjit.txt"));
  EXPECT_EQ(output_of_calc("--asmjit " + (k_scripts / "exceptions.calc").string()),
            text_of_file(k_expected / "exceptions.txt"));
}
#endif

TEST(OrcCalc, SaysWhatItCannotRun) {
  const TemporaryFolder folder;
  const std::string script = folder / "bad.calc";
  const auto said_of = [&](const std::string& program) {
    std::ofstream(script) << program;
    const std::string said = output_of_calc(script);
    EXPECT_TRUE(said.starts_with(script + ":")) << said;
    return said.substr(std::min(said.size(), script.size() + 1));
  };
  EXPECT_EQ(said_of("print(1);\nprint(1, 2)"), "2:1: 'print' takes 1 arguments, not 2\nexit 2\n");
  EXPECT_EQ(said_of("def f(x) y"), "1:10: unknown name 'y'\nexit 2\n");
  EXPECT_EQ(said_of("def f(x) g(x)"), "1:10: unknown function 'g'\nexit 2\n");
  EXPECT_EQ(said_of("def f(x) 1; def f(y) 2"), "1:17: 'f' is defined already\nexit 2\n");
  EXPECT_EQ(said_of("def root(x) 1"), "1:5: 'root' is defined already\nexit 2\n");
  EXPECT_EQ(said_of("def f(x, x) 1"), "1:5: two parameters are called 'x'\nexit 2\n");
  EXPECT_EQ(output_of_calc(folder / "none"),
            "orc_calc: cannot read " + folder / "none" + ": No such file or directory\nexit 2\n");
  EXPECT_EQ(output_of_calc("--what"), "usage: orc_calc [--asmjit] [FILE]\nexit 2\n");
}

TEST(OrcCalc, GoesOnAtThePrompt) {
  const Ended ended = run(std::string("printf 'def f(x) root(x)\\nf(4)\\nf(\\nf(-1)\\nf(9)\\n' | ") + orc_calc());
  EXPECT_EQ(ended.status, 0);
  for (const char* line :
       {"= 2\n", "line:1:3: an expression expected, not the end\n", "uncaught: square root of -1", "= 3\n"})
    EXPECT_NE(ended.text.find(line), std::string::npos) << line << "not in\n" << ended.text;
}

std::string error_of(const std::string& program) {
  try {
    (void)calc::parse(program);
  } catch (const calc::SyntaxError& error) {
    return error.what();
  }
  return "";
}

TEST(OrcCalcParser, SaysWhereAndWhat) {
  EXPECT_EQ(error_of("1 +"), "1:4: an expression expected, not the end");
  EXPECT_EQ(error_of("1\n  2"), "2:3: ';' expected, not '2'");
  EXPECT_EQ(error_of("def (x) 1"), "1:5: a name expected, not '('");
  EXPECT_EQ(error_of("def f(x 1"), "1:9: ')' expected, not '1'");
  EXPECT_EQ(error_of("def f(x,) 1"), "1:9: a name expected, not ')'");
  EXPECT_EQ(error_of("f(1, )"), "1:6: an expression expected, not ')'");
  EXPECT_EQ(error_of("if 1 then 2"), "1:12: 'else' expected, not the end");
  EXPECT_EQ(error_of("let 1"), "1:5: a name expected, not '1'");
  EXPECT_EQ(error_of("1 $ 2"), "1:3: unexpected '$'");
  EXPECT_EQ(error_of("\n\xff"), "2:1: unexpected byte 255");
  EXPECT_EQ(error_of("1x"), "1:2: unexpected 'x' behind a number");
  EXPECT_EQ(error_of("1.2.3"), "1:4: unexpected '.' behind a number");
  EXPECT_EQ(error_of("."), "1:1: '.' without digits");
  EXPECT_EQ(error_of("1e999"), "1:1: number out of range");
  EXPECT_EQ(error_of(std::string(500, '(')), "1:401: nested too deeply");
  EXPECT_EQ(error_of(std::string(500, '-') + "1"), "1:400: nested too deeply");
  std::string chain = "1";
  for (int i = 0; i < 500; ++i) chain += "+1";
  EXPECT_EQ(error_of(chain), "1:802: too many operators in a row");
}

TEST(OrcCalcParser, ReadsWhatItShould) {
  const auto items = calc::parse("# comment\ndef f(a, b) a - b - 1; ;f(1, -2) * 3 < 4;");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].function, "f");
  EXPECT_EQ(items[0].parameters, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(items[0].body->operands[0]->name, "-") << "from the left";
  EXPECT_EQ(items[1].body->name, "<") << "binds least";
  EXPECT_EQ(items[1].body->operands[0]->name, "*");
}

}  // namespace
}  // namespace jitunwind::test

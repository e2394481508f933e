// Scripts that cannot be run: their errors, with the places. No depth, length or mistake crashes the parser.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "examples/toy_vm/parser.h"

namespace {

constexpr std::array<toy::NativeName, 2> k_natives{{{"print", 1}, {"each", 2}}};

/// Returns "3: unknown name 'x'"; "" for a script that can be run.
std::string mistake(const std::string& script) {
  try {
    toy::parse(script, k_natives);
    return "";
  } catch (const toy::SyntaxError& error) {
    return error.what();
  }
}

std::string repeated(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

struct Bad {
  const char* name;
  std::string script;
  std::string message;
};

const std::vector<Bad> k_bad{
    // Characters and words.
    {"Empty", "", "1: no function 'main'"},
    {"NoMain", "fn f() {}\n", "2: no function 'main'"},
    {"StrangeCharacter", "fn main() {\n  print(1 $ 2);\n}", "2: unexpected '$'"},
    {"StrangeByte", "fn main() {\n\n  \xff\n}", "3: unexpected byte 0xff"},
    {"Zero", std::string("fn main() {\0}", 13), "1: unexpected byte 0x00"},
    {"OpenText", "fn main() {\n  print(\"one);\n}", "2: text without closing '\"'"},
    {"OpenTextAtEnd", "fn main() { print(\"a\\", "1: text without closing '\"'"},
    {"UnknownEscape", "fn main() {\n  print(\"a\\t\");\n}", "2: unknown escape: \\ and 't'"},
    {"NumberTooBig", "fn main() {\n  print(9223372036854775808);\n}",
     "2: number 9223372036854775808 does not fit into 64 bits"},
    {"NumberAndLetters", "fn main() { print(12ab); }", "1: '12ab' is no number"},
    // Sentences.
    {"StatementOutside", "print(1);", "1: expected 'fn', not 'print'"},
    {"NoName", "fn (", "1: expected name of a function, not '('"},
    {"NoParameterName", "fn main(1) {}", "1: expected name of a parameter, not '1'"},
    {"NoComma", "fn main(a b) {}", "1: expected ',', not 'b'"},
    {"NoBlock", "fn main()\nprint(1);", "2: expected '{', not 'print'"},
    {"OpenBlock", "fn main() {\n  print(1);\n\n", "4: expected an expression, not end of script"},
    {"BlockAlone", "fn main() { { } }", "1: expected an expression, not '{'"},
    {"NoSemicolon", "fn main() {\n  print(1)\n}", "3: expected ';', not '}'"},
    {"NoOperand", "fn main() { print(1 + ); }", "1: expected an expression, not ')'"},
    {"OpenParenthesis", "fn main() { print((1 + 2; }", "1: expected ')', not ';'"},
    {"KeywordAsName", "fn main() { let while = 1; }", "1: expected name of a variable, not 'while'"},
    {"LetWithoutValue", "fn main() { let x; }", "1: expected '=', not ';'"},
    {"TextAsStatement", "fn main() { \"a\" 1; }", "1: expected ';', not '1'"},
    {"ElseAlone", "fn main() { else {} }", "1: expected an expression, not 'else'"},
    {"TryAlone", "fn main() {\n  try { print(1); }\n  print(2);\n}", "2: 'try' without 'catch' or 'finally'"},
    {"TryWithoutBlock", "fn main() { try print(1); catch e {} }", "1: expected '{', not 'print'"},
    {"OpenTry", "fn main() { try { print(1);", "1: expected an expression, not end of script"},
    {"CatchWithoutName", "fn main() { try { } catch { } }", "1: expected name for what is caught, not '{'"},
    {"CatchAlone", "fn main() { catch e { } }", "1: expected an expression, not 'catch'"},
    {"FinallyBeforeCatch", "fn main() { try { } finally { } catch e { } }", "1: expected an expression, not 'catch'"},
    {"BreakOutside", "fn main() {\n  break;\n}", "2: 'break' outside of a loop"},
    {"ContinueOutside", "fn f() { while 1 { } } fn main() { continue; }", "1: 'continue' outside of a loop"},
    // Names.
    {"UnknownName", "fn main() {\n  let y = 1;\n  print(x);\n}", "3: unknown name 'x'"},
    {"UnknownVariable", "fn main() {\n  x = 1;\n}", "2: unknown variable 'x'"},
    {"UnknownFunction", "fn main() {\n  f(1);\n}", "2: unknown function 'f'"},
    {"CallOfVariable", "fn main() { let f = main; f(); }", "1: 'f' is no function: call what it holds with apply()"},
    {"EndOfScope", "fn main() { if 1 { let x = 1; }\n x = 2; }", "2: unknown variable 'x'"},
    {"EndOfCatch", "fn main() { try { print(1); } catch e { } print(e); }", "1: unknown name 'e'"},
    {"OtherFunctionsVariable", "fn f() { let x = 1; } fn main() { print(x); }", "1: unknown name 'x'"},
    {"UsedInItself", "fn main() { let x = x; }", "1: unknown name 'x'"},
    {"DeclaredTwice", "fn main() {\n  let x = 1;\n  let x = 2;\n}", "3: 'x' is declared twice"},
    {"ParameterTwice", "fn main(a, a) {}", "1: 'a' is declared twice"},
    {"FunctionTwice", "fn f() {}\nfn main() {}\nfn f(a) {}", "3: function 'f' is defined twice"},
    {"FunctionOfCxx", "fn print(x) {}\nfn main() {}", "1: function 'print' is there already, in C++"},
    {"AssignedToFunction", "fn main() { main = 1; }", "1: unknown variable 'main'"},
    {"TooFewArguments", "fn f(a, b) {}\nfn main() {\n  f(1);\n}", "3: 'f' takes 2 arguments, not 1"},
    {"TooManyArguments", "fn main() {\n  print(1, 2);\n}", "2: 'print' takes 1 argument, not 2"},
    {"LaterFunctionsArguments", "fn main() { f(); }\nfn f(a) {}", "1: 'f' takes 1 argument, not 0"},
    // Sizes.
    {"DeepParentheses", "fn main() { print(" + repeated(100'000, "(") + "1); }", "1: nested too deep"},
    {"DeepNot", "fn main() { print(" + repeated(100'000, "not ") + "1); }", "1: nested too deep"},
    {"DeepMinus", "fn main() { print(" + repeated(100'000, "-") + "1); }", "1: nested too deep"},
    {"DeepBlocks", "fn main() {" + repeated(100'000, "\nwhile 1 {"), "201: nested too deep"},
    {"DeepTry", "fn main() {" + repeated(1'000, "try {") + repeated(1'000, "} finally { }"), "1: nested too deep"},
    {"LongElse", "fn main() { if 1 {} " + repeated(100'000, "else if 1 {} "), "1: nested too deep"},
};

class BadScript : public testing::TestWithParam<Bad> {};

TEST_P(BadScript, IsRefusedWithItsLine) { EXPECT_EQ(mistake(GetParam().script), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(All, BadScript, testing::ValuesIn(k_bad), [](const auto& info) { return info.param.name; });

TEST(ToyParser, RefusesFramesThatAreTooBig) {
  const auto variables = [](int count) {
    std::string script = "\nfn main() {";
    for (int i = 0; i < count; ++i) script += " let x" + std::to_string(i) + " = 0;";
    return script + " }";
  };
  EXPECT_EQ(mistake(variables(1'000)), "");
  EXPECT_EQ(mistake(variables(1'001)), "2: function 'main' needs too many values at a time");
}

TEST(ToyParser, AcceptsWhatIsJustDeepEnough) {
  EXPECT_EQ(mistake("fn main() { print(" + repeated(190, "(") + "1" + repeated(190, ")") + "); }"), "");
  EXPECT_EQ(mistake("fn main() {" + repeated(190, "try {") + repeated(190, "} finally { print(1); }") + "}"), "");
}

TEST(ToyParser, LeavesOutWhatNothingLeadsTo) {
  const toy::Program program = toy::parse(
      "fn main() { return 1; print(2); while 1 { try { print(3); } catch e { print(4); } finally { print(5); } } }",
      {k_natives});
  using toy::Op;
  const auto& main = program.functions[program.main];
  ASSERT_EQ(main.code.size(), 2u);
  EXPECT_EQ(main.code[0].op, Op::number);
  EXPECT_EQ(main.code[1].op, Op::return_value);
  for (const toy::Handler& handler : main.handlers) EXPECT_FALSE(handler.used);
}

}  // namespace

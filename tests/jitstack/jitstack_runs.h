// Running the program jitstack.
#pragma once

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {

struct Printed {
  int status = 0;
  std::string out{}, err{};
};

inline Printed jitstack(const std::string& arguments) {
  const TemporaryFolder folder;
  const Ended ended = run(JITSTACK " " + arguments + " >'" + (folder / "out") + "' 2>'" + (folder / "err") + "'");
  return {ended.status, text_of_file(folder / "out"), text_of_file(folder / "err")};
}

inline std::string id_of(const TargetProgram& program) { return std::to_string(program.process()); }

/// Expects a line for each of `patterns`, in this order; other lines may stand between them.
inline void expect_lines(const std::string& text, const std::vector<std::string>& patterns) {
  const auto lines = lines_of(text);
  std::size_t line = 0;
  for (const std::string& pattern : patterns) {
    while (line < lines.size() && !matches(lines[line], pattern)) ++line;
    ASSERT_LT(line++, lines.size()) << pattern << "\nin\n" << text;
  }
}

}  // namespace jitunwind::test

// The instructions of a program, which the load of the machine does not change. Its tests define VALGRIND, the program
// that counts them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"

namespace jitunwind::test {

/// Returns 0, and the test fails, if nothing was counted.
inline double instructions_of(const std::string& command, const std::string& environment = "") {
  const std::string output =
      output_of(environment + " " VALGRIND " --tool=callgrind --callgrind-out-file=/dev/null " + command + " 2>&1");
  const std::string mark = "Collected : ";
  const auto at = output.find(mark);
  if (at == std::string::npos) {
    ADD_FAILURE() << output;
    return 0;
  }
  return std::stod(output.substr(at + mark.size()));
}

/// Returns the instructions of one round. The last argument of the program is the number of rounds. Its own start is in
/// every number, but not in the difference.
inline double instructions_of_a_round(const std::string& command, const std::string& environment = "") {
  constexpr int k_few = 1000, k_many = 3000;
  const double few = instructions_of(command + " " + std::to_string(k_few), environment);
  return (instructions_of(command + " " + std::to_string(k_many), environment) - few) / (k_many - k_few);
}

}  // namespace jitunwind::test

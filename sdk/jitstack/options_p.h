// The command line of jitstack.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind::jitstack {

/// The values are those of docs/jitstack.md "Exit status".
/// cut_short is also the status of descriptions that disagree with their code.
enum class ExitStatus : int { whole = 0, cut_short = 1, usage = 2, no_target = 3, not_written = 4 };

struct Options {
  std::vector<pid_t> processes{};
  std::vector<std::string> files{};  ///< that are checked
  std::string core{};                ///< "": processes
  std::string program{};             ///< of the core
  std::string perf{};                ///< "": none
  std::string root{};
  std::vector<pid_t> threads{};  ///< empty: all
  bool rows = false;
  bool why = false;
  bool json = false;
  bool hold = false;
  bool bold = false;
  bool check = false;
  bool run = false;
  double watch = 0;  ///< seconds; 0: once
  double frequency = 20;
  std::string output{};  ///< of watch and perf, without ".folded"; "": the default

  Guesses guesses() const noexcept { return bold ? Guesses::bold : Guesses::confirmed; }
};

/// None: the help, the version or an error has been written, and the program ends with `status`.
std::optional<Options> parse_options(int argc, const char* const* argv, ExitStatus& status);

/// Compares descriptions of code with the code.
ExitStatus check_code(const Options& options);

/// Prints the stack of each sample, or writes a profile of the samples if Options::output is set.
ExitStatus show_samples(const Options& options);

/// Writes OUTPUT.folded, and says so on stdout. SIGINT, SIGTERM and the end of the process end it early;
/// the samples until then are written.
ExitStatus watch(const Options& options);

}  // namespace jitunwind::jitstack

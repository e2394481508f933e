#include "jitunwind/sdk/jitstack/options_p.h"

#include <jitunwind/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>

#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {
namespace {

struct Parsed {
  Options options{};
  std::vector<std::string> arguments{};  ///< PID..., or the program of a core
};

void declare(CLI::App& app, Parsed& parsed) {
  Options& options = parsed.options;
  app.set_version_flag("--version", "jitstack " JITUNWIND_VERSION_TEXT);
  app.get_formatter()->column_width(26);
  app.footer(
      "Exit status: 0 all stacks are whole, 1 one is cut short or a description disagrees with its code, 2 usage, 3 a "
      "target or thread is not there, 4 output cannot be written.");
  app.add_option("PID", parsed.arguments,
                 "Processes; with --core, the file of its program; with --check, also ELF files and jitdumps")
      ->type_name("");
  app.add_option("--core", options.core, "Stacks of a core file")->type_name("FILE");
  app.add_option("--perf", options.perf, "Stacks of the samples of perf record --call-graph dwarf")->type_name("FILE");
  app.add_option("--root", options.root, "Folder with the files of the machine that the core or samples are of")
      ->type_name("FOLDER");
  app.add_option("--threads", options.threads, "These threads only: ids, with commas between them")
      ->type_name("ID,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, std::numeric_limits<pid_t>::max()).description(""));
  app.add_flag("--rows", options.rows, "The row of each frame: how its caller is found");
  app.add_flag("--why", options.why, "Why each walk ended; with --check: what cannot be told, too");
  app.add_flag("--json", options.json, "One JSON document");
  app.add_flag("--hold", options.hold, "Processes stand still until they are walked, not only until they are copied");
  app.add_flag("--bold", options.bold, "Goes on by frame pointers where nothing is known of the code: marked guesses");
  app.add_option("--watch", options.watch, "Look again and again for so many seconds, and count the stacks")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 1e6).description(""));
  app.add_option("--frequency", options.frequency, "How often a second --watch looks, 20 unless said otherwise")
      ->type_name("HZ")
      ->check(CLI::Range(0.001, 1000.0).description(""));
  app.add_flag("--check", options.check, "Compare the unwind information of code with the code, instead of walking");
  app.add_flag("--run", options.run, "With --check: execute what disagrees");
  app.add_option("--output", options.output,
                 "File of --watch: NAME.folded; jitstack-PID.folded otherwise. --perf writes it, too")
      ->type_name("NAME");
}

void check_watch(const Options& options, bool has_frequency) {
  if (options.watch == 0) {
    if (has_frequency) throw CLI::ValidationError("--frequency is of --watch");
    if (!options.output.empty() && options.perf.empty())
      throw CLI::ValidationError("--output is of --watch and --perf");
    if (!options.output.empty() && (options.json || options.rows || options.why))
      throw CLI::ValidationError("--output prints no stacks, so none with --json, --rows or --why");
    return;
  }
  if (options.processes.size() != 1) throw CLI::ValidationError("--watch is of one process");
  if (options.json || options.rows || options.why)
    throw CLI::ValidationError("--watch prints no stacks, so none with --json, --rows or --why");
}

void check_checking(const Options& options) {
  if (!options.check) {
    if (options.run) throw CLI::ValidationError("--run is of --check");
    return;
  }
  if (options.watch != 0 || !options.perf.empty() || options.rows || options.bold || !options.threads.empty())
    throw CLI::ValidationError("--check walks no stacks, so none of --watch, --perf, --rows, --bold and --threads");
}

/// Assigns the arguments, whose meaning depends on the options.
void take_arguments(Parsed& parsed) {
  Options& options = parsed.options;
  if (!options.perf.empty()) {
    if (!options.core.empty() || !parsed.arguments.empty() || options.watch != 0 || options.hold)
      throw CLI::ValidationError("--perf FILE stands alone: no PID, no --core, --watch or --hold");
    return;
  }
  if (!options.core.empty()) {
    if (parsed.arguments.size() > 1) throw CLI::ValidationError("--core FILE takes one program");
    if (!parsed.arguments.empty()) options.program = parsed.arguments.front();
    if (options.watch != 0) throw CLI::ValidationError("--watch is of a process, a core stands still");
    if (options.hold) throw CLI::ValidationError("--hold is of processes, a core stands still");
    return;
  }
  if (!options.root.empty())
    throw CLI::ValidationError("--root is of core files and samples: --core FILE or --perf FILE is missing");
  if (parsed.arguments.empty())
    throw CLI::ValidationError(options.check ? "PID, FILE or --core FILE is missing" : "PID or --core FILE is missing");
  for (const std::string& argument : parsed.arguments) {
    pid_t process = 0;
    const bool is_number = CLI::detail::lexical_cast(argument, process) && process > 0;
    if (!is_number && options.check) {
      options.files.push_back(argument);
      continue;
    }
    if (!is_number)
      throw CLI::ValidationError("'" + escaped(argument) + "' is no number of a process; a core file follows --core");
    options.processes.push_back(process);
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, ExitStatus& status) {
  CLI::App app("Prints the stacks of processes and core files, frames of registered JIT code included.", "jitstack");
  Parsed parsed;
  declare(app, parsed);
  try {
    app.parse(argc, argv);
    check_checking(parsed.options);
    take_arguments(parsed);
    check_watch(parsed.options, app.count("--frequency") != 0);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    status = ExitStatus::whole;
    return std::nullopt;
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "jitstack: %s\nTry: jitstack --help\n", escaped(wrong.what()).c_str());
    status = ExitStatus::usage;
    return std::nullopt;
  }
  return std::move(parsed.options);
}

}  // namespace jitunwind::jitstack

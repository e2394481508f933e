#include "jitunwind/sdk/jitstack/options_p.h"

#include <jitunwind/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>

#include "jitunwind/sdk/jitstack/escaped_p.h"

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
      "Exit status: 0 all stacks are whole, 1 one is cut short, 2 usage, 3 a target or thread is not there, 4 output "
      "cannot be written.");
  app.add_option("PID", parsed.arguments, "Processes; with --core, the file of its program")->type_name("");
  app.add_option("--core", options.core, "Stacks of a core file")->type_name("FILE");
  app.add_option("--root", options.root, "Folder with the files of the machine that the core is of")
      ->type_name("FOLDER");
  app.add_option("--threads", options.threads, "These threads only: ids, with commas between them")
      ->type_name("ID,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, std::numeric_limits<pid_t>::max()).description(""));
  app.add_flag("--rows", options.rows, "The row of each frame: how its caller is found");
  app.add_flag("--why", options.why, "Why each walk ended");
  app.add_flag("--json", options.json, "One JSON document");
  app.add_flag("--hold", options.hold, "Processes stand still until they are walked, not only until they are copied");
}

/// What the arguments mean, which depends on the options.
void take_arguments(Parsed& parsed) {
  Options& options = parsed.options;
  if (!options.core.empty()) {
    if (parsed.arguments.size() > 1) throw CLI::ValidationError("--core FILE takes one program");
    if (!parsed.arguments.empty()) options.program = parsed.arguments.front();
    if (options.hold) throw CLI::ValidationError("--hold is of processes, a core stands still");
    return;
  }
  if (!options.root.empty()) throw CLI::ValidationError("--root is of core files: --core FILE is missing");
  if (parsed.arguments.empty()) throw CLI::ValidationError("PID or --core FILE is missing");
  for (const std::string& argument : parsed.arguments) {
    pid_t process = 0;
    if (!CLI::detail::lexical_cast(argument, process) || process <= 0)
      throw CLI::ValidationError("'" + escaped(argument) + "' is no number of a process");
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
    take_arguments(parsed);
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

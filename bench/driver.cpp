// Runs the peers' programs in alternation, round by round, and prints what this library costs beside them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/report.h"

namespace {

using bench::Contender;
using bench::Results;
using nlohmann::json;

constexpr const char* k_reference = "jitunwind";
constexpr const char* k_again = "jitunwind again";
constexpr const char* k_walk = "walk";
constexpr const char* k_cold = "cold";
constexpr const char* k_registration = "registration";
constexpr const char* k_throw = "throw";
constexpr const char* k_debugger = "debugger";

struct Peer {
  const char* title;
  const char* program;
  const char* needs;  ///< what was not there when the program was not built
  bool walks;
  bool registers;
  bool throws;  ///< by libgcc_s or by this library
  bool debugs = false;
};

constexpr std::array<Peer, 8> k_peers{{
    {k_reference, "bench_jitunwind", "", true, true, true},
    {"own runtime", "bench_jitunwind_eh", "", false, false, true},
    {"libgcc " JITUNWIND_GCC_VERSION, "bench_libgcc", "", true, true, true},
    {"nongnu 1.6.2", "bench_nongnu", "libunwind8 or the headers of libunwind-dev", true, true, false},
    {"LLVM 19", "bench_llvm", "libunwind-19 or the headers of libunwind-19-dev", true, true, false},
    {"limit", "bench_frame_pointer", "", true, false, false},
    {k_again, "bench_jitunwind", "", true, true, true},
    {"GDB", "measure_debuggers", "gdb", false, false, false, true},
}};

struct Options {
  std::filesystem::path folder;
  std::string filter = ".";
  std::string keep;
  std::size_t rounds = 5;
  double seconds = 0.03;
  std::size_t max_functions = 100'000;
  bool quick = false;
  bool large = false;
};

/// On a terminal, one line that is written over.
void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

/// Output of the program; none when it failed.
std::optional<std::string> run(const std::filesystem::path& program, const std::string& group,
                               const std::string& filter, const std::string& how, const Options& options) {
  const std::string command = "'" + program.string() + "' " + group + " " + std::to_string(options.max_functions) +
                              " " + how + " --benchmark_filter='" + filter + "' 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string output;
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  if (pclose(pipe) != 0) return std::nullopt;
  return output;
}

/// Which measurements have a process of their own: all of the filter's in one, or, where nothing may be warm, each.
std::vector<std::string> filters_of(const std::filesystem::path& program, const std::string& group,
                                    const Options& options) {
  if (group != k_cold) return {options.filter};
  std::vector<std::string> all;
  std::istringstream names(run(program, group, options.filter, "--benchmark_list_tests", options).value_or(""));
  for (std::string name; std::getline(names, name);) all.push_back("^" + name + "$");
  return all;
}

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream in(name);
  for (std::string part; std::getline(in, part, '/');) {
    if (part != "manual_time" && part.rfind("iterations:", 0) != 0) parts.push_back(part);  // Google Benchmark's own
  }
  return parts;
}

/// "walk/unw_step/static/10" -> row "walk/static/10" of the way "unw_step".
void add(const json& measured, const Peer& peer, std::size_t round, Results& results) {
  std::vector<std::string> parts = split(measured.at("name"));
  const Contender contender{peer.title, parts.at(1)};
  std::string row = parts.at(0);
  for (std::size_t i = 2; i < parts.size(); ++i) row += "/" + parts[i];
  if (measured.value("error_occurred", false)) {
    results.add_mistake(row, contender, measured.at("error_message"));
  } else {
    results.add(row, contender, round, 1e9 / measured.at("items_per_second").get<double>());
  }
}

struct Part {
  std::size_t round;
  std::string group;
  std::string filter;
};

void run_one(const Peer& peer, const Part& part, const Options& options, Results& results, json& kept) {
  const std::string how = "--benchmark_format=json --benchmark_min_time=" + std::to_string(options.seconds);
  const std::optional<std::string> text = run(options.folder / peer.program, part.group, part.filter, how, options);
  if (text && text->empty()) return;  // the filter left nothing
  const json output = json::parse(text.value_or(""), nullptr, false);
  if (output.is_discarded()) return results.add_mistake(part.group, {peer.title, ""}, "the program failed");
  for (const json& measured : output.at("benchmarks")) add(measured, peer, part.round, results);
  kept.push_back({{"peer", peer.title}, {"round", part.round}, {"output", output}});
}

void run_round(std::size_t round, const std::string& group, const Options& options, Results& results, json& kept) {
  // There and back, so that what drifts does not always meet the same one.
  for (std::size_t i = 0; i < k_peers.size(); ++i) {
    const Peer& peer = k_peers[round % 2 == 0 ? i : k_peers.size() - 1 - i];
    const std::filesystem::path program = options.folder / peer.program;
    if (!std::filesystem::exists(program) || ((group == k_walk || group == k_cold) && !peer.walks) ||
        (group == k_registration && !peer.registers) || (group == k_throw && !peer.throws) ||
        (group == k_debugger && !peer.debugs))
      continue;
    show_progress(group + ", round " + std::to_string(round + 1) + " of " + std::to_string(options.rounds) + ": " +
                  peer.title);
    for (const std::string& filter : filters_of(program, group, options))
      run_one(peer, {round, group, filter}, options, results, kept);
  }
}

void print(const Results& results) {
  const std::vector<bench::TableOptions> tables{
      {"Walk, ns a frame", "walk/", {k_reference, "backtrace"}, k_again},
      {"First walk in a process, ns a frame", "first_walk/", {k_reference, "backtrace"}, k_again},
      {"New functions in a warm process, ns a frame", "new_functions/", {k_reference, "backtrace"}, k_again},
      {"Register, ns a procedure", "register/", {k_reference, "register_procedure"}, k_again},
      {"Cancel, ns a procedure", "cancel/", {k_reference, "register_procedure"}, k_again},
      {"First lookup after N registrations, ns", "first_lookup/", {k_reference, "register_procedure"}, k_again},
      {"Lookup of registered procedures, N registered, ns",
       "lookup_jit/",
       {k_reference, "register_procedure"},
       k_again},
      {"Lookup of static code, N registered, ns", "lookup_static/", {k_reference, "register_procedure"}, k_again},
      {"Throw, kind of frames / depth / others registered, ns", "throw/", {"own runtime", "jitunwind-eh"}, k_again},
      {"Under GDB, command / procedures registered one by one, elapsed time, ns; how GDB knows them",
       "debugger/",
       {"GDB", "nothing"},
       ""},
      {"First throw after N registrations, ns", "first_throw/", {k_reference, "libgcc_s"}, k_again},
  };
  for (const bench::TableOptions& table : tables) std::cout << results.table(table);
}

/// Names what the tables do not show.
int print_what_is_missing(const Options& options, const Results& results) {
  for (const Peer& peer : k_peers) {
    if (!std::filesystem::exists(options.folder / peer.program)) {
      std::cout << "Not measured: " << peer.title << ": at build time there was no " << peer.needs << "\n";
    }
  }
  const std::string mistakes = results.mistakes();
  if (mistakes.empty()) return 0;
  std::cout << "Went wrong:\n" << mistakes;
  return mistakes.find(k_reference) == std::string::npos ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.folder = std::filesystem::canonical("/proc/self/exe").parent_path();
  CLI::App app{"Measures this library and other unwinders in alternation"};
  app.add_option("--rounds", options.rounds, "How often each program runs")->check(CLI::PositiveNumber);
  app.add_option("--filter", options.filter, "Only measurements whose name matches");
  app.add_option("--keep", options.keep, "File for all that Google Benchmark reported");
  app.add_flag("--quick", options.quick, "A first impression: 2 short rounds, at most 10000 procedures");
  app.add_flag("--large", options.large, "Up to a million procedures");
  CLI11_PARSE(app, argc, argv);
  if (options.large) options.max_functions = 1'000'000;
  if (options.quick) {
    options.rounds = 2;
    options.seconds = 0.01;
    options.max_functions = 10'000;
  }

  Results results;
  json kept = json::array();
  for (const std::string group : {k_walk, k_cold, k_registration, k_throw, k_debugger}) {
    for (std::size_t round = 0; round < options.rounds; ++round) run_round(round, group, options, results, kept);
  }
  show_progress("");
  if (!options.keep.empty()) std::ofstream(options.keep) << kept.dump(1);
  std::cout << "Medians of " << options.rounds
            << " rounds, processor time; (x): ratio to the first column in the same round.\n\n";
  print(results);
  return print_what_is_missing(options, results);
}

// Runs the peers' programs in alternation, round by round, and prints what this library costs beside them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/baseline.h"
#include "bench/contenders.h"
#include "bench/report.h"
#include "bench/tables.h"

namespace {

using bench::Contender;
using bench::Peer;
using bench::Results;
using nlohmann::json;

/// Cold groups have this many rounds for each round of the others, because a process cannot repeat cold work.
constexpr std::size_t k_cold_rounds = 5;
/// The filter that leaves nothing out.
constexpr const char* k_all = ".";

struct Options {
  std::filesystem::path folder;
  std::vector<bench::Release> releases = bench::read_releases(BENCH_PACKAGES, BENCH_PEERS);
  std::vector<Peer> peers;           ///< those that can be run
  std::vector<std::string> missing;  ///< peers that cannot be run and why, a line each
  std::string filter = k_all;
  std::string keep;
  std::string report;
  std::string baseline;
  std::string new_baseline;
  std::size_t rounds = 5;
  double seconds = 0.03;
  std::size_t max_functions = 100'000;
  bool quick = false;
  bool large = false;
};

/// Shows progress on a terminal, in one line that is overwritten.
void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

std::optional<std::string> run(const Peer& peer, const std::string& group, const std::string& filter,
                               const std::string& how, const Options& options) {
  return bench::output_of(peer.command(options.folder) + " " + group + " " +
                          std::to_string(std::min(options.max_functions, peer.most_functions)) + " " + how +
                          " --benchmark_filter='" + filter + "' 2>/dev/null");
}

void add(const json& measured, const Peer& peer, std::size_t round, Results& results) {
  const bench::MeasurementName name(measured.at("name"));
  const Contender contender{peer.title, name.way};
  if (measured.value("error_occurred", false)) {
    results.add_mistake(name.row, contender, measured.at("error_message"));
  } else {
    results.add(name.row, contender, round, 1e9 / measured.at("items_per_second").get<double>());
  }
}

/// Scripts get the available releases from the environment, a line each: title, tab, LD_LIBRARY_PATH.
void choose_peers(Options& options) {
  for (const Peer& peer : bench::peers(options.releases)) {
    const std::string missing = what_is_missing(peer, options.folder);
    if (missing.empty())
      options.peers.push_back(peer);
    else if (std::find(options.missing.begin(), options.missing.end(), missing) == options.missing.end())
      options.missing.push_back(missing);
  }
  std::string all;
  for (const bench::Release& release : options.releases)
    if (release.is_unpacked()) all += release.title() + "\t" + release.library_path() + "\n";
  setenv("BENCH_RELEASES", all.c_str(), 1);
}

struct Part {
  std::size_t round;
  std::string group;
  std::string filter;
};

/// A set of measurements that all peers make one after the other before they go on to the next set. It is a row of a
/// group, so that a ratio compares measurements of about the same time. If a process takes long to get ready, it is the
/// whole group.
struct Row {
  std::string filter;
  std::set<std::string> names;  ///< names in all programs; if empty, the filter decides
};

bool is_cold(const std::string& group) { return group == bench::k_cold || group == bench::k_cold_throw; }

std::vector<std::string> names_of(const Peer& peer, const std::string& group, const Options& options) {
  std::vector<std::string> all;
  std::istringstream names(run(peer, group, k_all, "--benchmark_list_tests", options).value_or(""));
  for (std::string name; std::getline(names, name);)
    if (bench::is_selected(name, options.filter)) all.push_back(name);
  return all;
}

/// Makes the filter of a row: "walk/unw_step/static/10" becomes "^walk/[^/]+/static/10$".
std::string filter_of_row(const std::string& name) {
  const std::size_t way = name.find('/');
  const std::size_t rest = name.find('/', way + 1);
  return "^" + name.substr(0, way) + "/[^/]+" + (rest == std::string::npos ? "" : name.substr(rest)) + "$";
}

/// Scripts do not list what they measure. Programs of groups whose processes take long to get ready run once a round.
bool is_of_scripts(const std::string& group) {
  return group == bench::k_debuggers || group == bench::k_links || group == bench::k_starts;
}
bool is_in_rows(const std::string& group) {
  return group == bench::k_walk || is_cold(group) || group == bench::k_throw || group == bench::k_targets;
}

/// The rows of a group as one.
std::vector<Row> joined(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  Row all = rows.front();
  for (std::size_t i = 1; i < rows.size(); ++i) all.filter += "|" + rows[i].filter;
  return {all};
}

std::vector<Row> rows_of(const std::string& group, const Options& options) {
  if (is_of_scripts(group) || (!is_in_rows(group) && options.filter == k_all)) return {{options.filter, {}}};
  std::vector<Row> rows;
  for (const Peer& peer : options.peers) {
    if (!peer.measures(group) || bench::is_again(peer.title)) continue;
    for (const std::string& name : names_of(peer, group, options)) {
      const std::string filter = filter_of_row(name);
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& known) { return known.filter == filter; });
      if (row == rows.end()) row = rows.insert(rows.end(), {filter, {}});
      row->names.insert(peer.program + ("/" + name));
    }
  }
  return is_in_rows(group) ? rows : joined(rows);
}

void run_one(const Peer& peer, const Part& part, const Options& options, Results& results, json& kept) {
  const std::string how = "--benchmark_format=json --benchmark_min_time=" + std::to_string(options.seconds);
  const std::optional<std::string> text = run(peer, part.group, part.filter, how, options);
  if (text && text->empty()) return;  // the filter left nothing to measure
  const json output = json::parse(text.value_or(""), nullptr, false);
  if (output.is_discarded()) return results.add_mistake(part.group, {peer.title, ""}, "the program failed");
  for (const json& measured : output.at("benchmarks")) add(measured, peer, part.round, results);
  kept.push_back({{"peer", peer.title}, {"round", part.round}, {"output", output}});
}

/// Returns a filter for each process that measures a part of the row. One process measures all of it, except that in
/// cold groups every measurement gets a process of its own.
std::vector<std::string> filters_of(const Peer& peer, const std::string& group, const Row& row) {
  if (!is_cold(group)) return {row.filter};
  std::vector<std::string> all;
  const std::string of_peer = std::string(peer.program) + "/";
  for (const std::string& name : row.names)
    if (name.rfind(of_peer, 0) == 0) all.push_back("^" + name.substr(of_peer.size()) + "$");
  return all;
}

void run_row(std::size_t round, const std::string& group, const Row& row, const Options& options, Results& results,
             json& kept) {
  // Every second round runs backwards, so that a drift of the machine does not always affect the same peer.
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    const Peer& peer = options.peers[round % 2 == 0 ? i : options.peers.size() - 1 - i];
    if (!peer.measures(group)) continue;
    show_progress(group + ", round " + std::to_string(round + 1) + ": " + peer.title);
    for (const std::string& filter : filters_of(peer, group, row))
      run_one(peer, {round, group, filter}, options, results, kept);
  }
}

// Counting of instructions.

/// Counts the instructions of a program that does one thing `times` times. Returns nothing when callgrind cannot run
/// it.
std::optional<double> instructions(const Peer& peer, const std::string& name, std::size_t times,
                                   const Options& options) {
  const auto output =
      bench::output_of(peer.command(options.folder, "valgrind --tool=callgrind --callgrind-out-file=/dev/null") +
                       " count '" + name + "' " + std::to_string(times) + " 2>&1");
  const std::string mark = "Collected : ";
  const auto at = output ? output->find(mark) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return std::stod(output->substr(at + mark.size()));
}

bool counts(const Peer& peer, const std::string& name) {
  if (name.find("walk") != std::string::npos) return peer.measures(bench::k_walk);
  if (name.find("throw") != std::string::npos) return peer.measures(bench::k_throw);
  return peer.measures(bench::k_registration) || peer.measures(bench::k_orc);
}

/// Counts instructions for a number of repetitions and for twice as many, for everything that a program can repeat. The
/// difference is the cost of the additional ones.
void count_instructions(const Peer& peer, const Options& options, Results& results) {
  const std::size_t few = peer.measures(bench::k_orc) ? 2 : 10;  // a module takes up to a hundred million
  std::istringstream lines(bench::output_of(peer.command(options.folder) + " count").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(space + 1);
    if (!bench::is_selected(name, options.filter) || !counts(peer, name)) continue;
    show_progress("counting " + name + " of " + peer.title);
    const auto less = instructions(peer, name, few, options);
    const auto more = instructions(peer, name, 2 * few, options);
    const double items = std::stod(line.substr(0, space)) * static_cast<double>(few);
    const json measured{{"name", name}, {"items_per_second", less && more ? 1e9 * items / (*more - *less) : 0}};
    if (less && more && *more > *less) add(measured, peer, 0, results);
  }
}

void count_all_instructions(const Options& options, Results& results) {
  if (!bench::output_of("valgrind --version 2>/dev/null")) return;
  for (const Peer& peer : options.peers)
    for (const char* const group : {bench::k_walk, bench::k_throw, bench::k_registration, bench::k_orc})
      if (peer.measures(group) && !bench::is_again(peer.title)) {
        count_instructions(peer, options, results);
        break;
      }
}

// The report.

constexpr const char* k_what_is_shown =
    "Medians, processor time; (x): ratio to the first column in the same round. Target: ratios to others, (at most), ! "
    "where missed. Programs run with the C library of this system where no title names another.\n\n";

std::string what_is_shown(const Options& options) {
  std::string text = k_what_is_shown;
  for (const bench::Release& release : options.releases) {
    if (!release.is_unpacked()) continue;
    text += "* " + release.title() + ", Debian " + release.suite + ":";
    for (const std::string& package : release.packages) text += (text.back() == ':' ? " " : ", ") + package;
    text += "\n";
  }
  return text + "\n";
}

std::vector<bench::TableOptions> tables(const Options& options) {
  return bench::tables(bench::others(options.releases).front());
}

/// The ratios to today's releases of others and to older ones.
bench::Ratios ratios(const Options& options, const Results& results) {
  bench::Ratios all;
  for (const bench::Others& others : bench::others(options.releases))
    all.merge(results.target_ratios(bench::tables(others)));
  return all;
}

/// Returns the lines of the report that show the plots, which gnuplot draws.
std::string draw_plots(const std::filesystem::path& folder, const Results& results) {
  json plots = json::array();
  std::string shown;
  for (const bench::Plot& plot : bench::plots()) {
    json lines = json::array();
    for (const bench::Line& line : results.lines(plot.row_prefix))
      lines.push_back({{"name", line.name}, {"points", line.points}});
    if (lines.empty()) continue;
    plots.push_back({{"file", plot.file}, {"title", plot.title}, {"x_title", plot.x_title}, {"lines", lines}});
    shown += "![" + plot.title + "](" + plot.file + ")\n\n";
  }
  std::ofstream(folder / "plots.json") << plots.dump(1) << "\n";
  const std::string command = BENCH_PLOTS " '" + (folder / "plots.json").string() + "' '" + folder.string() + "'";
  return std::system(command.c_str()) == 0 ? shown : "No plots: gnuplot is not installed.\n\n";
}

void write_report(const Options& options, const Results& results) {
  const std::filesystem::path folder = options.report;
  std::filesystem::create_directories(folder);
  std::ofstream report(folder / "report.md");
  report << "# What unwinding costs\n\n" << what_is_shown(options) << draw_plots(folder, results);
  for (const bench::TableOptions& table : tables(options)) report << results.table(table).markdown();
  std::cout << "Report: " << (folder / "report.md").string() << "\n";
}

/// Returns nothing when the file is missing or holds something else.
std::optional<bench::Ratios> read_baseline(const std::string& file) {
  std::ifstream in(file);
  const json stored = in ? json::parse(in, nullptr, false) : json();
  if (!stored.is_object()) return std::nullopt;
  bench::Ratios ratios;
  for (const auto& [name, ratio] : stored.items()) {
    if (!ratio.is_number()) return std::nullopt;
    ratios[name] = ratio.get<double>();
  }
  return ratios;
}

void print(const Options& options, const Results& results) {
  std::cout << what_is_shown(options);
  for (const bench::TableOptions& table : tables(options)) std::cout << results.table(table).text();
  if (!options.report.empty()) write_report(options, results);
  if (!options.baseline.empty())
    std::cout << bench::compare_with_baseline(read_baseline(options.baseline), ratios(options, results));
  if (!options.new_baseline.empty()) {
    const auto stored = options.filter == k_all ? std::nullopt : read_baseline(options.new_baseline);
    std::ofstream(options.new_baseline) << json(bench::replaced(stored, ratios(options, results))).dump(1) << "\n";
  }
}

/// Names the measurements that the tables lack. Returns the status for the shell: 1 when a program failed, even a
/// peer's, since its rows are missing from the ratios.
int print_what_is_missing(const Options& options, const Results& results) {
  for (const std::string& line : options.missing) std::cout << "Not measured: " << line << "\n";
  const std::string mistakes = results.mistakes();
  if (mistakes.empty()) return 0;
  std::cout << "Went wrong:\n" << mistakes;
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.folder = std::filesystem::canonical("/proc/self/exe").parent_path();
  CLI::App app{"Measures this library and other unwinders in alternation"};
  app.add_option("--rounds", options.rounds, "How often each program runs")->check(CLI::PositiveNumber);
  app.add_option("--filter", options.filter, "Only measurements whose name or row matches");
  app.add_option("--keep", options.keep, "File for all that Google Benchmark reported");
  app.add_option("--report", options.report, "Folder for the tables as Markdown and for plots")->take_last();
  app.add_option("--baseline", options.baseline, "File of ratios to compare with")->take_last();
  app.add_option("--new-baseline", options.new_baseline,
                 "File for the ratios of this run; with --filter, it keeps its others");
  app.add_flag("--quick", options.quick, "A first impression: 2 short rounds, at most 10000 procedures");
  app.add_flag("--large", options.large, "Up to a million procedures");
  CLI11_PARSE(app, argc, argv);
  if (options.large) options.max_functions = 1'000'000;
  if (options.quick) {
    options.rounds = 2;
    options.seconds = 0.01;
    options.max_functions = 10'000;
  }
  choose_peers(options);

  Results results;
  json kept = json::array();
  for (const std::string group :
       {bench::k_walk, bench::k_cold, bench::k_registration, bench::k_throw, bench::k_cold_throw, bench::k_debuggers,
        bench::k_orc, bench::k_links, bench::k_starts, bench::k_large_code, bench::k_targets}) {
    const std::vector<Row> rows = rows_of(group, options);
    const std::size_t rounds = options.rounds * (is_cold(group) ? k_cold_rounds : 1);
    for (std::size_t round = 0; round < rounds; ++round)
      for (const Row& row : rows) run_row(round, group, row, options, results, kept);
  }
  count_all_instructions(options, results);
  show_progress("");
  if (!options.keep.empty()) std::ofstream(options.keep) << kept.dump(1);
  print(options, results);
  return print_what_is_missing(options, results);
}

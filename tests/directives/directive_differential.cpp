// Random descriptions on every CPU, answered by the library, by the plain reading in naive_directives.h, and, where a
// reference tool is given, by that tool. The tool's rules are not those of docs/directives.md in five points
// (OtherRules): the plain reading with all of them must give the tool's answers, and without them the library's.
//
// usage: directive_differential [--count N] [--seed N] [--reference TOOL] [--write FOLDER] [--keep N]
//   --count      descriptions a CPU (100000)
//   --reference  prints a line an offset for JSON descriptions; also from JITUNWIND_DIRECTIVE_REFERENCE
//   --write      keep some of the tool's answers as random_*.case there: of --keep descriptions a CPU (160)
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/directives/naive_directives.h"
#include "tests/directives/random_description.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x40000;
constexpr std::size_t k_batch = 500;

struct Options {
  long count = 100000;
  unsigned long seed = 1;
  std::string reference;
  std::string write;
  unsigned long keep = 160;
};

struct Question {
  std::uint64_t offset;
  bool of_call;
};

std::vector<Question> questions(const Arch& arch, const RandomDescription& d) {
  std::vector<Question> all;
  for (std::uint64_t offset = 0; offset < d.size; offset += arch.unit) all.push_back({offset, false});
  for (std::uint64_t offset = arch.unit; offset <= d.size; offset += arch.unit) all.push_back({offset, true});
  return all;
}

struct Figures {
  long descriptions = 0, invalid = 0, rows = 0, errors = 0;
  long library_differs = 0, tool_asked = 0, tool_differs = 0;
  std::map<std::string, long> by_rule;
};

bool same(const NaiveAnswer& a, const NaiveAnswer& b) {
  return a.error == b.error && (a.error != ErrorCode::unspecified || a.row == b.row);
}

std::string text_of(const NaiveAnswer& a, const Arch& arch) {
  return a.error == ErrorCode::unspecified ? to_text(a.row, arch) : "error " + finding_name(a.error);
}

NaiveAnswer library_row(const rows::CaseProcedure& procedure, const Arch& arch, const Question& q) {
  const Addr at = k_code + q.offset;
  NaiveAnswer answer;
  const Status status =
      directive_row(procedure.info(), arch, q.of_call ? CodeAddress::returned_to(at) : CodeAddress::interrupted(at),
                    nullptr, answer.row);
  if (!status) answer.error = status.error().code;
  return answer;
}

void describe(const RandomDescription& d, const Arch& arch) {
  std::printf("%s, size %llu\n", arch.name, static_cast<unsigned long long>(d.size));
  for (const rows::CaseRegion& r : d.regions) {
    std::printf("region %d\n", r.insn_count);
    for (const unw_dyn_op_t& op : r.ops) std::printf("  %s\n", directive_text(op, arch).c_str());
  }
}

/// Compares all of the library's answers about a description with those of the plain reading.
void compare_with_reading(const Arch& arch, const RandomDescription& d, Figures& figures) {
  const rows::CaseProcedure procedure(d.regions, {k_code, k_code + d.size});
  ++figures.descriptions;
  bool invalid = false;
  for (const Question& q : questions(arch, d)) {
    const NaiveAnswer expected = naive_row(arch, d.size, d.regions, q.offset, q.of_call);
    const NaiveAnswer actual = library_row(procedure, arch, q);
    ++(expected.error == ErrorCode::unspecified ? figures.rows : figures.errors);
    invalid |= expected.error != ErrorCode::unspecified;
    if (same(expected, actual) || ++figures.library_differs > 3) continue;
    describe(d, arch);
    std::printf("%s+%llx library: %s\n  plain reading: %s\n", q.of_call ? "call " : "",
                static_cast<unsigned long long>(q.offset), text_of(actual, arch).c_str(),
                text_of(expected, arch).c_str());
  }
  figures.invalid += invalid;
}

// The tool.

std::string json_of(const unw_dyn_op_t& op, const Arch& arch) {
  static const char* const names[] = {"STOP", "SAVE_REG",   "SPILL_FP_REL", "SPILL_SP_REL",
                                      "ADD",  "POP_FRAMES", "LABEL_STATE",  "COPY_STATE"};
  std::ostringstream text;
  const auto value = static_cast<std::int64_t>(op.val);
  const auto reg = [&](std::int64_t n) {
    return '"' + std::string(arch.by_libunwind(static_cast<int>(n))->name) + '"';
  };
  text << "[\"" << names[op.tag] << '"';
  if (op.tag != UNW_DYN_STOP) text << ',' << op.when;
  if (op.tag >= UNW_DYN_SAVE_REG && op.tag <= UNW_DYN_ADD) text << ',' << reg(op.reg);
  if (op.tag == UNW_DYN_SAVE_REG)
    text << ',' << reg(value);
  else if (op.tag == UNW_DYN_ADD && op.val == UNW_DYN_ADD_UNKNOWN)
    text << ",\"UNKNOWN\"";
  else if (op.tag != UNW_DYN_STOP)
    text << ',' << value;
  return text.str() + ']';
}

std::string json_of(const RandomDescription& d, const Arch& arch, bool of_call) {
  std::ostringstream text;
  text << "{\"arch\":\"" << arch.name << "\",\"size\":" << d.size << ",\"after_call\":" << (of_call ? "true" : "false")
       << ",\"regions\":[";
  for (std::size_t i = 0; i < d.regions.size(); ++i) {
    text << (i ? ",[" : "[") << d.regions[i].insn_count << ",[";
    for (std::size_t k = 0; k < d.regions[i].ops.size(); ++k)
      text << (k ? "," : "") << json_of(d.regions[i].ops[k], arch);
    text << "]]";
  }
  text << "],\"at\":[";
  bool first = true;
  for (const Question& q : questions(arch, d)) {
    if (q.of_call != of_call) continue;
    text << (first ? "" : ",") << q.offset;
    first = false;
  }
  return text.str() + "]}";
}

/// Returns the tool's lines, one for each question, in the order of the descriptions.
std::vector<std::string> ask_tool(const std::string& tool, const std::vector<RandomDescription>& batch,
                                  const Arch& arch) {
  char path[] = "/tmp/directive_differential_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) throw std::runtime_error("no temporary file");
  close(file);
  std::ofstream json(path);
  for (std::size_t i = 0; i < batch.size(); ++i)
    json << (i ? ",\n" : "[") << json_of(batch[i], arch, false) << ",\n" << json_of(batch[i], arch, true);
  json << "]\n";
  json.close();
  int status = 0;
  const std::string said = test::output_of(tool + " " + path, status);
  unlink(path);
  if (status != 0) throw std::runtime_error(tool + " failed");
  return test::lines_of(said);
}

ErrorCode code_named(const std::string& name) {
  for (int i = 0; i < 256; ++i)
    if (finding_name(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  throw std::runtime_error("the tool's code " + name);
}

/// Parses "+4: cfa=..." or "+4: error E_NO_FP ...".
NaiveAnswer parse_line(const std::string& line, const Arch& arch, ExpressionPool& pool) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string::npos) throw std::runtime_error("the tool's line " + line);
  NaiveAnswer answer;
  if (line.compare(colon + 2, 6, "error ") == 0) {
    std::istringstream words(line.substr(colon + 8));
    std::string name;
    words >> name;
    answer.error = code_named(name);
    return answer;
  }
  const auto row = parse_row(line, arch, pool);
  if (!row) throw std::runtime_error("the tool's row " + line);
  answer.row = row->row;
  return answer;
}

const char* rule_that_matters(const Arch& arch, const RandomDescription& d, const Question& q) {
  static const std::pair<unsigned, const char*> rules[] = {
      {k_strict_fp, "frame pointer not saved by an earlier instruction"},
      {k_stale_places, "places relative to an SP that is gone"},
      {k_saved_is_kept, "scratch frame pointer that was saved"},
      {k_unknown_copy, "copy of an unknown SP"},
      {k_order_of_saves, "order of saves in one instruction"},
  };
  const NaiveAnswer documented = naive_row(arch, d.size, d.regions, q.offset, q.of_call);
  for (const auto& [rule, name] : rules)
    if (!same(documented, naive_row(arch, d.size, d.regions, q.offset, q.of_call, rule))) return name;
  return "several at once";
}

class Keeper {
 public:
  Keeper(const Options& options, const Arch& arch) : arch_(arch), most_(options.keep) {
    if (options.write.empty()) return;
    std::string name = arch.name;
    std::replace(name.begin(), name.end(), '-', '_');
    file_.open(options.write + "/random_" + name + ".case");
    file_ << "# Random descriptions; the rows are those of another program than this library. Made by\n"
          << "# directive_differential --reference TOOL --write; findings are the library's.\n";
  }

  /// `lines` are the tool's answers to all questions.
  void keep(const RandomDescription& d, const std::vector<std::string>& lines) {
    std::set<std::string> kinds;
    for (const std::string& line : lines) kinds.insert(line.substr(line.find(": ")));
    if (!file_.is_open() || kept_ == most_ || kinds.size() < 3 || d.size > 24 * arch_.unit) return;
    file_ << "\ncase random" << kept_++ << "\narch " << arch_.name << "\nsize " << d.size << "\n";
    for (const rows::CaseRegion& r : d.regions) {
      file_ << "region " << r.insn_count << "\n";
      for (const unw_dyn_op_t& op : r.ops) file_ << "  " << directive_text(op, arch_) << "\n";
    }
    const std::vector<Question> all = questions(arch_, d);
    for (const bool of_call : {false, true}) {
      file_ << (of_call ? "calls\n" : "rows\n");
      std::string offsets, row;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].of_call != of_call) continue;
        const std::size_t colon = lines[i].find(": ");
        std::string text = lines[i].substr(colon + 2);
        if (text.starts_with("error ")) text.resize(text.find(' ', 6));
        if (text != row && !offsets.empty()) file_ << " " << offsets << ": " << row << "\n", offsets.clear();
        offsets += " " + lines[i].substr(0, colon);
        row = text;
      }
      if (!offsets.empty()) file_ << " " << offsets << ": " << row << "\n";
    }
    std::set<std::string> findings;
    for (const Finding& f : validate(rows::CaseProcedure(d.regions, {k_code, k_code + d.size}).info(), arch_))
      findings.insert(finding_name(f.code));
    file_ << "findings";
    if (findings.empty()) file_ << " none";
    for (const std::string& f : findings) file_ << ' ' << f;
    file_ << "\n";
  }

 private:
  const Arch& arch_;
  std::ofstream file_;
  std::size_t kept_ = 0;
  std::size_t most_;
};

void compare_with_tool(const Arch& arch, const std::vector<RandomDescription>& batch, const Options& options,
                       Keeper& keeper, Figures& figures) {
  const std::vector<std::string> lines = ask_tool(options.reference, batch, arch);
  std::size_t next = 0;
  for (const RandomDescription& d : batch) {
    bool rules_matter = false;
    std::vector<std::string> own;
    for (const Question& q : questions(arch, d)) {
      if (next == lines.size()) throw std::runtime_error("the tool gave too few lines");
      ExpressionPool pool;
      const std::string& line = lines[next++];
      own.push_back(line);
      const NaiveAnswer tool = parse_line(line, arch, pool);
      const NaiveAnswer other = naive_row(arch, d.size, d.regions, q.offset, q.of_call, k_other);
      const NaiveAnswer documented = naive_row(arch, d.size, d.regions, q.offset, q.of_call);
      ++figures.tool_asked;
      if (!same(other, documented)) {
        rules_matter = true;
        ++figures.by_rule[rule_that_matters(arch, d, q)];
      }
      if (same(tool, other) || ++figures.tool_differs > 3) continue;
      describe(d, arch);
      std::printf("%s%s\n  plain reading of its rules: %s\n", q.of_call ? "call " : "", line.c_str(),
                  text_of(other, arch).c_str());
    }
    if (!rules_matter) keeper.keep(d, own);
  }
  if (next != lines.size()) throw std::runtime_error("the tool gave too many lines");
}

bool run(const Arch& arch, const Options& options) {
  std::mt19937_64 random(options.seed);
  Figures figures;
  Keeper keeper(options, arch);
  std::vector<RandomDescription> batch;
  for (long i = 0; i < options.count; ++i) {
    batch.push_back(random_description(arch, random, Extremes::none));
    compare_with_reading(arch, batch.back(), figures);
    if (i % 4 == 0) compare_with_reading(arch, random_description(arch, random, Extremes::all), figures);
    if (batch.size() < k_batch && i + 1 != options.count) continue;
    if (!options.reference.empty()) compare_with_tool(arch, batch, options, keeper, figures);
    batch.clear();
  }
  std::printf(
      "%s: %ld descriptions, %ld of them invalid somewhere: %ld rows, %ld errors; library and plain reading differ in "
      "%ld\n",
      arch.name, figures.descriptions, figures.invalid, figures.rows, figures.errors, figures.library_differs);
  if (options.reference.empty()) {
    std::printf("  no reference tool was given\n");
  } else {
    std::printf("  reference tool: %ld answers; it and the plain reading of its rules differ in %ld\n",
                figures.tool_asked, figures.tool_differs);
    for (const auto& [name, count] : figures.by_rule)
      std::printf("  %8ld answers where its rules are others: %s\n", count, name.c_str());
  }
  return figures.library_differs == 0 && figures.tool_differs == 0;
}

Options parse(int argc, char** argv) {
  Options options;
  if (const char* tool = std::getenv("JITUNWIND_DIRECTIVE_REFERENCE")) options.reference = tool;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--count")
      options.count = std::stol(argv[i + 1]);
    else if (name == "--seed")
      options.seed = std::stoul(argv[i + 1]);
    else if (name == "--reference")
      options.reference = argv[i + 1];
    else if (name == "--write")
      options.write = argv[i + 1];
    else if (name == "--keep")
      options.keep = std::stoul(argv[i + 1]);
    else
      throw std::runtime_error("unknown option " + name);
  }
  return options;
}

}  // namespace
}  // namespace jitunwind::test

int main(int argc, char** argv) {
  try {
    const auto options = jitunwind::test::parse(argc, argv);
    bool passed = true;
    for (const jitunwind::Arch* arch : jitunwind::all_arches()) passed &= jitunwind::test::run(*arch, options);
    return passed ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "directive_differential: %s\n", e.what());
    return 2;
  }
}

// The program jitstack with --check: functions whose call frame information is wrong in one place that is known, files
// of other CPUs, processes and core files with code made at run time, and files that are none.
#include <elf.h>
#include <jitunwind/version.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/unwind_core/check/check.h"
#include "tests/jitstack/jitstack_runs.h"
#include "tests/jitstack/json_keys.h"
#include "tests/listen/dump_writer.h"
#include "tests/support/failing_memory.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Json = nlohmann::json;

Addr address_in(const Json& json) { return std::stoull(json.get<std::string>(), nullptr, 16); }

/// The labels of a file by their names.
std::map<std::string, Addr> symbols_of(const std::string& file) {
  std::map<std::string, Addr> symbols;
  for (const std::string& line : lines_of(output_of("nm '" + file + "'")))
    if (Groups match; matches(line, match, Pattern("([0-9a-f]+) \\w (\\w+)")))
      symbols[match[2]] = std::stoull(match[1], nullptr, 16);
  return symbols;
}

/// Returns the rule that readelf shows at an address for a register, "ra" or "CFA": "c-16", "rsp+8" or "u", but "" if
/// it has no such column.
std::string rule_by_readelf(const std::string& file, Addr at, const std::string& reg) {
  std::vector<std::string> head;
  std::string found;
  bool is_in_range = false;
  for (const std::string& line : lines_of(output_of("readelf --debug-dump=frames-interp '" + file + "' 2>&1"))) {
    if (Groups match; matches(line, match, Pattern(".* FDE .*pc=([0-9a-f]+)\\.\\.([0-9a-f]+)"))) {
      is_in_range = at >= std::stoull(match[1], nullptr, 16) && at < std::stoull(match[2], nullptr, 16);
      continue;
    }
    std::istringstream stream(line);
    const std::vector<std::string> cells{std::istream_iterator<std::string>(stream), {}};
    if (!is_in_range || cells.size() < 2) continue;
    if (cells[0] == "LOC") {
      head = cells;
    } else if (std::stoull(cells[0], nullptr, 16) <= at) {
      const auto column = std::ranges::find(head, reg);
      found = column == head.end() ? "" : cells.at(static_cast<std::size_t>(column - head.begin()));
    }
  }
  return found;
}

/// Converts a rule to readelf's words: "cfa=rsp+40" to "rsp+40", "rbx=[cfa-16]" to "c-16".
std::string in_words_of_readelf(const std::string& row_says) {
  const std::string rule = row_says.substr(row_says.find('=') + 1);
  if (rule == "same") return "u";
  Groups match;
  return matches(rule, match, Pattern("\\[cfa(.*)\\]")) ? "c" + match[1] : rule;
}

/// A copy of a file for another CPU, whose instructions the file has as words.
std::string for_machine(const std::string& file, std::uint16_t machine, const std::string& copy) {
  std::string bytes = text_of_file(file);
  std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof machine);
  std::ofstream(copy) << bytes;
  return copy;
}

Json json_of_check(const std::string& arguments, int status) {
  const Printed printed = jitstack("--check --json " + arguments);
  EXPECT_EQ(printed.status, status) << printed.err;
  return Json::parse(printed.out);
}

/// Each function is wrong from its label on, and all others agree or are as in `undecided`.
void expect_found(const std::string& file, const std::vector<std::string>& undecided, bool is_run) {
  const auto symbols = symbols_of(file);
  const Json json = json_of_check(std::string(is_run ? "--run " : "") + "'" + file + "'", 1);
  const Json& module = json["targets"].at(0)["modules"].at(0);
  std::map<std::string, Json> found;
  for (const Json& procedure : module["procedures"]) found[procedure["name"].get<std::string>()] = procedure;
  std::size_t wrong = 0;
  for (const auto& [label, at] : symbols) {
    if (!label.starts_with("at_")) continue;
    ++wrong;
    const std::string name = label.substr(3);
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found[name]["verdict"], "disagrees");
    EXPECT_EQ(address_in(found[name]["begin"]), symbols.at(name));
    const Json& finding = found[name]["findings"].at(0);
    EXPECT_EQ(address_in(finding["begin"]), at) << name;
    if (is_run) {
      EXPECT_EQ(finding["run"]["result"], name == "cold_part" ? "not_run" : "wrong") << name << finding;
    }
    const std::string row_says = finding["row_says"];
    if (row_says.find('=') == std::string::npos) continue;  // of the signature
    const std::string reg = finding["register"];
    const std::string column = reg == "cfa" ? "CFA" : reg == "rip" || reg == "x30" ? "ra" : reg;
    const std::string theirs = rule_by_readelf(file, at, column);
    EXPECT_EQ(theirs.empty() ? "u" : theirs, in_words_of_readelf(row_says)) << name;
  }
  EXPECT_EQ(found.size(), wrong);
  EXPECT_EQ(module["disagree"], wrong);
  EXPECT_EQ(module["undecided"], undecided.size());
  const Json why = json_of_check("--why '" + file + "'", 1);
  std::vector<std::string> also;
  for (const Json& procedure : why["targets"].at(0)["modules"].at(0)["procedures"])
    if (procedure["verdict"] == "cannot_tell")
      also.push_back(procedure["name"].is_null() ? "" : procedure["name"].get<std::string>());
  std::ranges::sort(also);
  EXPECT_EQ(also, undecided);
}

TEST(JitstackCheck, FindsWhatIsWrongInAFileWhereItBegins) {
  expect_found(DESCRIBED_WRONGLY, {"undecided"}, !k_is_sanitized);
}

TEST(JitstackCheck, FindsWhatIsWrongInAFileOfAarch64) {
  const TemporaryFolder folder;
  expect_found(for_machine(DESCRIBED_WRONGLY_A64, EM_AARCH64, folder / "a64.so"), {}, false);
}

TEST(JitstackCheck, SaysThatItCannotTellOfOtherCpus) {
  const TemporaryFolder folder;
  const std::string file = for_machine(DESCRIBED_WRONGLY_A64, EM_RISCV, folder / "riscv.so");
  const Json target = json_of_check("'" + file + "'", 0)["targets"].at(0);
  EXPECT_EQ(target["cpu"], "riscv64");
  const Json& module = target["modules"].at(0);
  EXPECT_EQ(module["undecided"], module["checked"]);
  EXPECT_EQ(module["reasons"], Json({{"code of this CPU is not checked", module["checked"]}}));
}

TEST(JitstackCheck, WritesTextForPeople) {
  const Printed printed = jitstack("--check '" DESCRIBED_WRONGLY "'");
  EXPECT_EQ(printed.status, 1);
  EXPECT_EQ(printed.err, "");
  expect_lines(printed.out,
               {"file .*, x86-64", "", ".*described_wrongly.*", "  0x[0-9a-f]+  disagrees  cfa_off_by_8",
                R"(    0x[0-9a-f]+: the row says cfa=rsp\+40, but rsp is cfa-48, .* 0x[0-9a-f]+  48 83 ec 20)",
                "  0x[0-9a-f]+  disagrees  missing_push",
                "    0x[0-9a-f]+: the row says r12=same, but r12 holds the caller's rdi, .*  49 89 fc",
                "  [0-9]+ descriptions: 3 agree, 10 disagree, 1 undecided", " +1 undecided: .*"});
  EXPECT_EQ(printed.out.find('\033'), std::string::npos);
  EXPECT_EQ(printed.out.find("run"), std::string::npos);
}

/// Rows that one instruction has made wrong in the same way are shown once.
TEST(JitstackCheck, ShowsThreeMistakesOfAProcedure) {
  jitstack::SeenProcedure procedure;
  procedure.name = "many";
  const std::vector<std::pair<RegNum, Addr>> wrong{{3, 0x101}, {3, 0x101}, {3, 0x101},
                                                   {7, 0x104}, {6, 0x101}, {12, 0x108}};
  for (const auto& [reg, cause] : wrong) {
    CheckFinding finding;
    finding.range = {cause + 1, cause + 2};
    finding.verdict = Verdict::disagrees;
    finding.reg = reg;
    finding.row_says = "r" + std::to_string(reg);
    finding.cause = cause;
    procedure.findings.push_back({finding, "", {}});
  }
  const auto shown = [&](bool all) {
    const auto output = jitstack::check_text_output(jitstack::Colours(), all);
    testing::internal::CaptureStdout();
    output->begin_target({"file"}, arch::x86_64);
    output->begin_module("file");
    output->procedure(procedure);
    EXPECT_TRUE(output->end());
    const std::string text = testing::internal::GetCapturedStdout();
    std::vector<std::string> says;
    for (const std::string& line : lines_of(text))
      if (Groups match; matches(line, match, Pattern(".* the row says (\\w+), .*"))) says.push_back(match[1]);
    if (Groups match; matches(lines_of(text).back(), match, Pattern(" +and (\\d+) more.*")))
      says.push_back("+" + match[1]);
    return says;
  };
  EXPECT_EQ(shown(false), (std::vector<std::string>{"r3", "r7", "r6", "+3"}));
  EXPECT_EQ(shown(true), (std::vector<std::string>{"r3", "r3", "r3", "r7", "r6", "r12"}));
}

TEST(JitstackCheck, DescribesEveryKeyOfItsJson) {
  const Json json = json_of_check(k_is_sanitized ? DESCRIBED_WRONGLY : "--run " DESCRIBED_WRONGLY, 1);
  expect_keys(json, {"format", "jitstack", "targets"});
  const Json& target = json["targets"].at(0);
  expect_keys(target, {"file", "core", "process", "cpu", "error", "modules"});
  EXPECT_EQ(target["file"], DESCRIBED_WRONGLY);
  const Json& module = target["modules"].at(0);
  expect_keys(module, {"module", "procedures", "checked", "agree", "disagree", "undecided", "assumed", "reasons"});
  EXPECT_EQ(module["checked"],
            module["agree"].get<int>() + module["disagree"].get<int>() + module["undecided"].get<int>());
  const Json& procedure = module["procedures"].at(0);
  expect_keys(procedure, {"name", "begin", "end", "verdict", "findings"});
  std::set<std::string> keys{"begin",    "end",       "verdict", "reason",      "register",
                             "row_says", "code_does", "since",   "instruction", "also_wrong"};
  if (!k_is_sanitized) {
    keys.insert("run");
    expect_keys(procedure["findings"].at(0)["run"], {"result", "why"});
  }
  expect_keys(procedure["findings"].at(0), keys);
}

/// The module of code made at run time is the last one.
void expect_jit_code(const Json& target) {
  EXPECT_EQ(target["error"], Json());
  const Json& jit = target["modules"].back();
  EXPECT_EQ(jit["module"], Json());
  EXPECT_GE(jit["checked"], 1);
  EXPECT_EQ(jit["agree"], jit["checked"]);
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(target["modules"], [&](const Json& module) {
      return !module["module"].is_null() && module["module"].get<std::string>().find(name) != std::string::npos &&
             module["agree"] > 10;
    });
  };
  EXPECT_TRUE(has("libc.so.6"));
  EXPECT_TRUE(has("target_program"));
}

TEST(JitstackCheck, ChecksTheModulesAndTheRegisteredCodeOfAProcess) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
#ifdef __SANITIZE_ADDRESS__
  const std::vector<std::string> options{"--hold "};  // the check of all modules takes 25 seconds
#else
  const std::vector<std::string> options{"", "--hold "};
#endif
  for (const std::string& option : options) {
    const Printed printed = jitstack("--check --json " + option + id_of(program));
    EXPECT_LE(printed.status, 1);  // glibc has errors of its own
    EXPECT_EQ(printed.err, "");
    const Json target = Json::parse(printed.out)["targets"].at(0);
    EXPECT_EQ(target["process"], program.process());
    expect_jit_code(target);
  }
  EXPECT_NE(text_of_file("/proc/" + id_of(program) + "/status").find("TracerPid:\t0\n"), std::string::npos);
}

#ifdef GCORE_PROGRAM
TEST(JitstackCheck, ChecksTheModulesAndTheRegisteredCodeOfACoreFile) {
  const TemporaryFolder folder;
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  output_of(GCORE_PROGRAM " -o '" + (folder / "core") + "' " + id_of(program) + " 2>&1");
  const std::string core = folder / ("core." + id_of(program));
  const Printed printed = jitstack("--check --json --core '" + core + "'");
  EXPECT_LE(printed.status, 1);
  const Json target = Json::parse(printed.out)["targets"].at(0);
  EXPECT_EQ(target["core"], core);
  expect_jit_code(target);
}
#endif

TEST(JitstackCheck, SaysWhichFilesCannotBeChecked) {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << "no ELF file";
  std::ofstream(folder / "empty");
  std::ofstream(folder / "jit-1.dump") << "no jitdump";
  std::ofstream(folder / "jit-2.dump");
  std::string bytes = text_of_file(DESCRIBED_WRONGLY);
  const auto with_type = [&](std::uint16_t type, const std::string& name) {
    std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_type)], &type, sizeof type);
    std::ofstream(folder / name) << bytes;
  };
  with_type(ET_REL, "object");
  with_type(ET_CORE, "core");
  std::ofstream(folder / "cut") << text_of_file(DESCRIBED_WRONGLY).substr(0, 5000);
  const struct {
    std::string file, reason, said;
  } cases[] = {
      {"none", "no_such_file", ".*/none' cannot be read: No such file or directory\\."},
      {"empty", "no_such_file", ".*/empty' cannot be read: it is no file with contents\\."},
      {"text", "no_such_file", ".*/text' is no ELF file\\."},
      {"object", "no_such_file", ".*/object' is not linked: it is an object for the linker, without addresses\\."},
      {"core", "no_such_file", ".*/core' is a core file: --core\\."},
      {"cut", "no_such_file", ".*/cut' is cut off: it has 5000 bytes of [0-9]+\\."},
      {".", "no_such_file", ".*/\\.' cannot be read: .*"},
      {"jit-1.dump", "no_such_file", ".*/jit-1.dump' is no jitdump\\."},
      {"jit-2.dump", "no_such_file", ".*/jit-2.dump' cannot be read: it is no file with contents\\."},
      {"jit-3.dump", "no_such_file", ".*/jit-3.dump' cannot be read: No such file or directory\\."},
      {"unknown", "other_architecture", ".*/unknown' is of another architecture: .*"},
  };
  (void)for_machine(DESCRIBED_WRONGLY, EM_AVR, folder / "unknown");
  for (const auto& each : cases) {
    const std::string arguments = "--check '" + (folder / each.file) + "'";
    const Printed printed = jitstack(arguments);
    EXPECT_EQ(printed.status, 3) << each.file;
    EXPECT_EQ(printed.out, "");
    EXPECT_TRUE(matches(printed.err, Pattern("jitstack: " + each.said + "\n"))) << printed.err;
    const Json target = Json::parse(jitstack("--json " + arguments).out)["targets"].at(0);
    EXPECT_EQ(target["error"]["reason"], each.reason);
  }
  // A file of segments alone, without one that says where its call frame information is.
  bytes = text_of_file(DESCRIBED_WRONGLY);
  std::fill_n(bytes.begin() + offsetof(Elf64_Ehdr, e_shoff), sizeof(Elf64_Off), '\0');
  const std::string kind = "\x50\xe5\x74\x64";  // PT_GNU_EH_FRAME
  ASSERT_NE(bytes.find(kind), std::string::npos);
  std::ofstream(folder / "bare") << bytes.replace(bytes.find(kind), kind.size(), kind.size(), '\0');
  const Printed bare = jitstack("--check '" + (folder / "bare") + "'");
  EXPECT_EQ(bare.status, 0);
  expect_lines(bare.out, {"file .*/bare, x86-64", "  no call frame information"});
  // Other files of the command line are checked nevertheless.
  const Printed both = jitstack("--check '" + (folder / "none") + "' '" DESCRIBED_WRONGLY "'");
  EXPECT_EQ(both.status, 3);
  EXPECT_NE(both.out.find("descriptions:"), std::string::npos);
  const Ended unwritten = run(JITSTACK " --check '" DESCRIBED_WRONGLY "' >/dev/full");
  EXPECT_EQ(unwritten.status, 4);
  EXPECT_EQ(unwritten.text, "jitstack: cannot write: No space left on device\n");
}

TEST(JitstackCheck, SaysWhichArgumentIsMissing) {
  EXPECT_NE(jitstack("--check").err.find("PID, FILE or --core FILE is missing"), std::string::npos);
  EXPECT_NE(jitstack("--run '" DESCRIBED_WRONGLY "'").err.find("--run is of --check"), std::string::npos);
}

TEST(JitstackCheck, RefusesOptionsOfWalks) {
  for (const char* arguments : {"--check", "--run 1", "--check --watch 1 1", "--check --perf a", "--check --rows 1",
                                "--check --bold 1", "--check --threads 1 1", "--check --output a 1"}) {
    const Printed printed = jitstack(arguments);
    EXPECT_EQ(printed.status, 2) << arguments;
    EXPECT_EQ(printed.out, "") << arguments;
  }
}

/// A dump of three functions: push rbx; pop rbx; ret. The rows of the second, at the place of the first, and of the
/// third do not have the push. A fourth has no rows.
std::string jitdump() {
  constexpr Addr k_code = 0x7f00'0000'1000;
  const Bytes code{0x53, 0x5b, 0xc3};
  const Bytes right{0x41, 0x0e, 16, 0x83, 2, 0x41, 0x0e, 8};  // +1: cfa=rsp+16 rbx=[cfa-16]; +2: cfa=rsp+8
  Bytes dump = dump_header();
  dump.add(dump_frames(k_code, 3, right)).add(dump_loaded("right", k_code, code));
  dump.add(dump_frames(k_code, 3, {})).add(dump_loaded("replaced", k_code, code));
  dump.add(dump_moved(k_code, k_code + 0x100, 3)).add(dump_loaded("named", k_code + 0x200, code));
  dump.add(dump_frames(k_code + 64, 3, {})).add(dump_loaded("wrong", k_code + 64, code));
  return dump.string();
}

TEST(JitstackCheck, ChecksTheRecordsOfAJitdump) {
  const TemporaryFolder folder;
  const std::string path = folder / "jit-4711.dump";
  std::ofstream(path) << jitdump();
  const Printed printed = jitstack("--check '" + path + "'");
  EXPECT_EQ(printed.status, 1);
  EXPECT_EQ(printed.err, "");
  const std::string since = R"(: the row says cfa=rsp\+8, but rsp is cfa-16, since the instruction at 0x7f000000)";
  expect_lines(printed.out,
               {"file .*/jit-4711.dump, x86-64", "", ".*/jit-4711.dump", "  0x7f0000001000  disagrees  replaced",
                "    0x7f0000001001" + since + "1000  53", "  0x7f0000001040  disagrees  wrong",
                "    0x7f0000001041" + since + "1040  53", "  3 descriptions: 1 agree, 2 disagree, 0 undecided"});
  if (k_is_sanitized) return;
  const Json module = json_of_check("--run '" + path + "'", 1)["targets"].at(0)["modules"].at(0);
  for (const Json& procedure : module["procedures"])
    EXPECT_EQ(procedure["findings"].at(0)["run"]["result"], "wrong") << procedure;
}

/// Counts what a check visits.
class Counter final : public jitunwind::jitstack::CodeVisitor {
 public:
  explicit Counter(const jitunwind::jitstack::DescribedSource& source) : source_(source) {}
  void begin_module(const std::string&, std::uint64_t) override {}
  void end_parts() override {}
  void visit(const jitunwind::jitstack::DescribedCode& code, std::uint64_t) override {
    ++count;
    if (code.fde) (void)check(*code.fde, *code.context, source_.memory());
  }
  void visit_broken(Addr, const char*) override { ++broken; }
  std::size_t count = 0, broken = 0;

 private:
  const jitunwind::jitstack::DescribedSource& source_;
};

struct Looked {
  std::size_t opened = 0, visited = 0;
};
/// Checks a file of this name that is cut off anywhere, or has any byte changed.
Looked look_at_damaged(const std::string& whole, const std::string& path, std::size_t step) {
  Looked looked;
  const auto look_at = [&](const std::string& bytes) {
    std::ofstream(path) << bytes;
    const auto source = jitunwind::jitstack::open_file(path);
    if (!source) return;
    ++looked.opened;
    Counter counter(**source);
    (*source)->visit(counter);
    looked.visited += counter.count;
  };
  for (std::size_t size = 1; size < whole.size(); size += step) look_at(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); at += step)
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = value;
      look_at(bytes);
    }
  return looked;
}

/// Files are hostile.
TEST(JitstackCheck, ReadsDamagedFiles) {
  const TemporaryFolder folder;
  const Looked files = look_at_damaged(text_of_file(DESCRIBED_WRONGLY), folder / "damaged", k_is_sanitized ? 301 : 61);
  EXPECT_GT(files.opened, 100u);
  EXPECT_GT(files.visited, 1000u);
  const Looked dumps = look_at_damaged(jitdump(), folder / "jit-1.dump", 1);
  EXPECT_GT(dumps.opened, 1000u);
  EXPECT_GT(dumps.visited, 1000u);
}

}  // namespace
}  // namespace jitunwind::test

// The tables of docs/verified.md: what a check of other projects' unwind information finds, with the CPU as witness,
// and what it notices if one rule of that information is made wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/support/command.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Json = nlohmann::json;

/// A row of the page's first table.
struct Verified {
  std::string file, build_id;
  std::array<std::uint64_t, 5> counts{};  ///< descriptions, agree, disagree, undecided, taken at its word
};
void PrintTo(const Verified& verified, std::ostream* out) { *out << verified.file; }

std::vector<Verified> rows_of_page() {
  std::vector<Verified> rows;
  const Pattern row(
      R"(\| `(/[^`]+)` \| [^|]+ \| `([0-9a-f]+)` \| ([0-9,]+) \| ([0-9,]+) \| ([0-9,]+) \| ([0-9,]+) \| ([0-9,]+) \|)");
  for (const std::string& line : lines_of(text_of_file(JITUNWIND_SOURCE_DIR "/docs/verified.md"))) {
    Groups match;
    if (!matches(line, match, row)) continue;
    Verified verified{match[1], match[2]};
    for (std::size_t i = 0; i < verified.counts.size(); ++i) {
      std::string number = match[3 + i];
      std::erase(number, ',');
      verified.counts[i] = std::stoull(number);
    }
    rows.push_back(verified);
  }
  return rows;
}

/// The others are told as not tested when the build is configured, as are builds that the page does not have.
std::vector<Verified> installed_rows() {
  std::vector<Verified> rows = rows_of_page();
  std::erase_if(rows, [](const Verified& row) { return ::access(row.file.c_str(), R_OK) != 0; });
  return rows;
}

class VerifiedFile : public testing::TestWithParam<Verified> {};

/// Another release of a library has other counts; what is required of every one holds for it, too.
TEST_P(VerifiedFile, HasWhatThePageSays) {
  const Verified& verified = GetParam();
  const TemporaryFolder folder;
  const Ended ended = run(JITSTACK " --check --run --json '" + verified.file + "' >'" + (folder / "json") + "'");
  ASSERT_LE(ended.status, 1) << ended.text;
  const Json module = Json::parse(text_of_file(folder / "json"))["targets"].at(0)["modules"].at(0);
  const auto count = [&](const char* key) { return module[key].get<std::uint64_t>(); };
  EXPECT_LT(count("undecided") * 1000, count("checked") * 15) << module["reasons"];
  EXPECT_FALSE(module["reasons"].contains("the run agrees")) << "the CPU refutes the check";
  std::string refuted;
  for (const Json& procedure : module["procedures"])
    for (const Json& finding : procedure["findings"])
      if (finding["run"]["result"] == "right") refuted += finding.dump() + "\n";
  EXPECT_EQ(refuted, "");
  const bool is_this_build =
      output_of("readelf -n '" + verified.file + "'").find(verified.build_id) != std::string::npos;
  if (is_this_build) {
    EXPECT_EQ((std::array{count("checked"), count("agree"), count("disagree"), count("undecided"), count("assumed")}),
              verified.counts);
  }
}

INSTANTIATE_TEST_SUITE_P(Page, VerifiedFile, testing::ValuesIn(installed_rows()),
                         [](const auto& info) { return replaced(info.param.file, Pattern("[^0-9a-zA-Z]"), "_"); });

TEST(VerifiedPage, HasEnoughFiles) { EXPECT_GE(rows_of_page().size(), 6u); }

/// Commands of the page, and what they must print.
struct Commands {
  std::string script;
  std::vector<std::string> lines;
};

/// The blocks of the page. Indented lines behind one are its output.
std::vector<Commands> commands_of_page() {
  std::vector<Commands> all;
  bool is_shell = false, is_behind = false;
  for (const std::string& line : lines_of(text_of_file(JITUNWIND_SOURCE_DIR "/docs/verified.md"))) {
    if (line.starts_with("```")) {
      is_behind = is_shell;
      is_shell = line == "```sh";
      if (is_shell) all.emplace_back();
    } else if (is_shell) {
      all.back().script += "\n" + line;
    } else if (is_behind && line.starts_with("    ")) {
      all.back().lines.push_back(line.substr(4));
    } else if (!line.empty()) {
      is_behind = false;
    }
  }
  return all;
}

/// Every block of commands shows rows that are wrong, or what the page says.
TEST(VerifiedPage, CommandsShowWhatItSays) {
  const std::vector<Commands> all = commands_of_page();
  const std::string path = std::string(JITSTACK).substr(0, std::string(JITSTACK).rfind('/'));
  for (const Commands& commands : all) {
    const Ended ended = run("export PATH='" + path + "':$PATH" + commands.script);
    const std::vector<std::string> printed = lines_of(ended.text);
    for (const std::string& line : commands.lines)
      EXPECT_NE(std::ranges::find(printed, line), printed.end()) << line << commands.script << "\n" << ended.text;
    if (commands.lines.empty()) {
      EXPECT_NE(ended.text.find("the row says"), std::string::npos) << commands.script << "\n" << ended.text;
    }
  }
  EXPECT_GE(all.size(), 11u);
}

/// Visits FDEs and makes one rule of one row wrong, in each way that no code can agree with.
class Mutants final : public jitunwind::jitstack::CodeVisitor {
 public:
  explicit Mutants(const jitunwind::jitstack::DescribedSource& source) : source_(source) {}
  void begin_module(const std::string&, std::uint64_t) override {}
  void end_parts() override {}
  void visit_broken(Addr, const char*) override {}

  /// A wrong rule cannot be noticed if its row was taken for what the code does: one at the entry, or behind a call
  /// that does not return. Then the report says so.
  void visit(const jitunwind::jitstack::DescribedCode& code, std::uint64_t) override {
    const CheckReport report = check(*code.fde, *code.context, source_.memory());
    if (report.verdict != Verdict::agrees || report.assumed != 0) return;
    rows_.clear();
    FrameRow row;
    row.range.end = code.fde->range.begin;
    FdeRows all(*code.fde, *code.context, row);
    for (auto more = all.next_behind(row.range.end); more && *more; more = all.next_behind(row.range.end))
      rows_.push_back(row);
    const std::size_t chosen = number_++ % rows_.size();
    const Arch& arch = source_.arch();
    // Nothing but that says anything of code without a caller.
    const bool is_outermost = rows_[chosen].rule(arch.ra).kind == RegRule::Kind::undefined;
    if (is_outermost || rows_[chosen].cfa.kind != CfaRule::Kind::offset) return;
    for (const std::int64_t by : {8, -8, 16}) try_with(code, chosen, [&](FrameRow& r) { r.cfa.offset += by; });
    try_with(code, chosen, [&](FrameRow& r) { EXPECT_TRUE(r.set(arch.ra, RegRule::at_cfa(-4096))); });
    const std::vector<FrameRow::Entry> entries(rows_[chosen].entries().begin(), rows_[chosen].entries().end());
    for (const FrameRow::Entry& entry : entries)
      if (entry.rule.kind == RegRule::Kind::at_cfa)
        try_with(code, chosen,
                 [&](FrameRow& r) { EXPECT_TRUE(r.set(entry.reg, RegRule::at_cfa(entry.rule.offset + 8))); });
    try_with(code, chosen, [&](FrameRow& r) { EXPECT_TRUE(r.set(arch.fp, RegRule::at_cfa(-1 << 20))); });
  }

  std::size_t made = 0, noticed = 0, undecided = 0;
  std::string first_missed;

 private:
  template <class Change>
  void try_with(const jitunwind::jitstack::DescribedCode& code, std::size_t chosen, Change change) {
    const FrameRow before = rows_[chosen];
    change(rows_[chosen]);
    const auto row_at = [&](Addr at, FrameRow& out) -> Found {
      const auto row = std::ranges::find_if(rows_, [&](const FrameRow& r) { return r.range.contains(at); });
      if (row == rows_.end()) return false;
      out = *row;
      return true;
    };
    ++made;
    const CheckReport report = check({source_.arch(), code.code, source_.memory()}, row_at);
    if (report.verdict == Verdict::disagrees) {
      ++noticed;
    } else if (report.verdict == Verdict::cannot_tell || report.assumed != 0) {
      ++undecided;
    } else if (first_missed.size() < 2000) {
      first_missed += hex_of(rows_[chosen].range.begin) + ": " + to_text(rows_[chosen], source_.arch()) + "\n";
    }
    rows_[chosen] = before;
  }
  static std::string hex_of(Addr at) {
    std::ostringstream text;
    text << "0x" << std::hex << at;
    return text.str();
  }

  const jitunwind::jitstack::DescribedSource& source_;
  std::vector<FrameRow> rows_;
  std::size_t number_ = 0;
};

TEST(VerifiedMutants, AreAllNoticed) {
  for (const auto& [file, build_id, counts] : installed_rows()) {
    if (!file.ends_with("/libc.so.6")) continue;
    const auto source = jitunwind::jitstack::open_file(file);
    ASSERT_TRUE(source) << source.error().text();
    Mutants mutants(**source);
    (*source)->visit(mutants);
    std::printf("%s: of %zu wrong rules %zu are noticed, %zu undecided\n", file.c_str(), mutants.made, mutants.noticed,
                mutants.undecided);
    EXPECT_GT(mutants.noticed, 10'000u);
    EXPECT_EQ(mutants.noticed + mutants.undecided, mutants.made) << mutants.first_missed;
  }
}

}  // namespace
}  // namespace jitunwind::test

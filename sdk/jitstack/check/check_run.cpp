// Checks what describes the code of processes, core files and files, module by module.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::jitstack {
namespace {

/// Checks the code that it visits.
class Checker final : public CodeVisitor {
 public:
  Checker(const Options& options, DescribedSource& source, CheckOutput& output, Progress& progress)
      : options_(options), source_(source), output_(output), progress_(progress) {}

  /// Returns whether some code disagrees with its description.
  bool run() {
    source_.visit(*this);
    end_module();
    return disagrees_;
  }

  void begin_module(const std::string& path, std::uint64_t size) override {
    end_module();
    module_ = path;
    size_ = std::max<std::uint64_t>(size, 1);
    is_open_ = true;
    progress_.clear();
    output_.begin_module(path);
  }

  void visit(const DescribedCode& code, std::uint64_t done) override {
    if (progress_.is_due())
      progress_.show((module_.empty() ? "JIT" : escaped(module_)) + ", " + std::to_string(done * 100 / size_) + " %, " +
                     std::to_string(tally_.all()) + " descriptions");
    checked_.push_back({code, check_part(code)});
  }

  void end_parts() override {
    while (parts_->begin_round())
      for (auto& [code, report] : checked_)
        if (parts_->is_due(code.code)) report = check_part(code);
    parts_.emplace();
    for (const auto& [code, report] : checked_) show(code, report);
    checked_.clear();
  }

  void visit_broken(Addr, const char*) override {
    ++tally_.undecided;
    ++tally_.broken;
  }

 private:
  struct Checked {
    DescribedCode code;
    CheckReport report;
  };

  CheckReport check_part(const DescribedCode& code) {
    const RowAt find_row = [this](Addr at, FrameRow& out) { return source_.find_row(at, out); };
    return code.fde ? check(*code.fde, *code.context, source_.memory(), &*parts_)
                    : check({source_.arch(), code.code, source_.memory()}, find_row, &*parts_);
  }

  void show(const DescribedCode& code, const CheckReport& report) {
    SeenProcedure procedure{"", code.code, report.verdict, {}, report.has_more_findings};
    bool has_wrong = report.has_more_findings;
    for (const CheckFinding& finding : report.findings) {
      const bool is_undecided = finding.verdict == Verdict::cannot_tell;
      if (is_undecided && !options_.why) continue;
      procedure.findings.push_back(see(code, finding));
      const auto& run = procedure.findings.back().run;
      has_wrong |= !is_undecided && !(run && run->result == ForcedRun::Result::right);
    }
    if (procedure.verdict == Verdict::disagrees && !has_wrong) procedure.verdict = Verdict::cannot_tell;
    count(report, procedure.verdict);
    if (procedure.findings.empty()) return;
    procedure.name = source_.name_of(code.code.begin);
    progress_.clear();
    output_.procedure(procedure);
  }

  void count(const CheckReport& report, Verdict verdict) {
    tally_.assumed += report.assumed;
    tally_.agree += verdict == Verdict::agrees;
    tally_.disagree += verdict == Verdict::disagrees;
    disagrees_ |= verdict == Verdict::disagrees;
    if (verdict != Verdict::cannot_tell) return;
    ++tally_.undecided;
    const auto first = std::ranges::find(report.findings, Verdict::cannot_tell, &CheckFinding::verdict);
    if (report.verdict == Verdict::disagrees)
      ++tally_.run_right;
    else if (first != report.findings.end())
      ++tally_.reasons[static_cast<std::size_t>(first->why)];
  }

  SeenFinding see(const DescribedCode& code, const CheckFinding& finding) {
    SeenFinding seen{finding, "", {}};
    if (finding.verdict == Verdict::cannot_tell) return seen;
    if (finding.cause) seen.instruction = instruction_at(*finding.cause);
    if (options_.run) seen.run = run(code, finding);
    return seen;
  }

  ForcedRun run(const DescribedCode& code, const CheckFinding& finding) {
    const Addr at = finding.range.begin;
    constexpr std::uint64_t k_longest = 1 << 24;
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(code.code.size(), k_longest)));
    bytes.resize(source_.memory().read(code.code.begin, bytes, window_));
    FrameRow row;
    const auto finds_row = [&] {
      const Found found = source_.find_row(at, row);
      return found && *found;
    };
    const bool has_row = code.fde ? bool(row_at(*code.fde, *code.context, at, row)) : finds_row();
    if (!has_row) return {ForcedRun::Result::not_run, "it has no row"};
    return run_to(source_.arch(), code.code, bytes, finding.cause, at, row);
  }

  std::string instruction_at(Addr at) {
    std::array<std::byte, 16> bytes{};
    const std::size_t size = source_.memory().read(at, bytes, window_);
    const Arch& arch = source_.arch();
    const std::size_t length =
        arch.read_instruction ? arch.read_instruction(std::span(bytes).first(size), at).length : std::size_t{0};
    std::string text;
    for (std::size_t i = 0; i < std::min(length, size); ++i) {
      char hex[4];
      std::snprintf(hex, sizeof hex, "%02x", std::to_integer<unsigned>(bytes[i]));
      text += (i == 0 ? "" : " ") + std::string(hex);
    }
    return text;
  }

  void end_module() {
    if (!is_open_) return;
    progress_.clear();
    output_.end_module(tally_);
    tally_ = {};
    is_open_ = false;
  }

  const Options& options_;
  DescribedSource& source_;
  CheckOutput& output_;
  Progress& progress_;
  MemoryWindow window_;
  std::string module_;
  std::uint64_t size_ = 1;
  std::optional<CheckedParts> parts_{std::in_place};
  std::vector<Checked> checked_;
  Tally tally_;
  bool is_open_ = false;
  bool disagrees_ = false;
};

class Checks {
  using Opened = Result<std::unique_ptr<DescribedSource>, TargetError>;

 public:
  explicit Checks(const Options& options)
      : options_(options), output_(options.json ? check_json_output() : check_text_output(Colours(1), options.why)) {}

  ExitStatus run() {
    if (!options_.core.empty())
      check({"", options_.core, 0}, Target::open_core(options_.core, {options_.root, options_.program}));
    for (const pid_t process : options_.processes)
      check({"", "", process},
            Target::attach(process, options_.hold ? Target::Hold::while_attached : Target::Hold::to_copy));
    for (const std::string& file : options_.files) check({file, "", 0}, open_file(file));
    if (output_->end()) return status_;
    std::perror("jitstack: cannot write");
    return ExitStatus::not_written;
  }

 private:
  void check(CheckedTarget checked, Result<Target, TargetError> target) {
    if (!target) return fail(checked, target.error());
    checked.process = target->process();
    remark_on_core(checked.core, progress_);
    check(checked, Opened(source_of(std::move(*target))));
  }
  void check(const CheckedTarget& checked, const Opened& opened) {
    if (!opened) return fail(checked, opened.error());
    DescribedSource& source = **opened;
    output_->begin_target(checked, source.arch());
    if (Checker(options_, source, *output_, progress_).run()) worse(ExitStatus::cut_short);
  }
  void fail(const CheckedTarget& checked, const TargetError& error) {
    progress_.say(error.text());
    output_->failed(checked, error);
    worse(ExitStatus::no_target);
  }
  void worse(ExitStatus status) { status_ = std::max(status_, status); }

  const Options& options_;
  std::unique_ptr<CheckOutput> output_;
  Progress progress_;
  ExitStatus status_ = ExitStatus::whole;
};

}  // namespace

ExitStatus check_code(const Options& options) { return Checks(options).run(); }

}  // namespace jitunwind::jitstack

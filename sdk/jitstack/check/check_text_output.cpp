// Writes checks for people.
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "jitunwind/sdk/jitstack/check/check_output_p.h"

namespace jitunwind::jitstack {
namespace {

class TextOutput final : public CheckOutput {
 public:
  TextOutput(const Colours& colours, bool shows_all) : colours_(colours), shows_all_(shows_all) {}

  void begin_target(const CheckedTarget& target, const Arch& arch) override {
    arch_ = &arch;
    end_target();
    text_ += is_first_ ? "" : "\n";
    is_first_ = false;
    has_nothing_ = true;
    text_ += !target.file.empty()   ? "file " + escaped(target.file)
             : !target.core.empty() ? "core file " + escaped(target.core)
                                    : "process " + std::to_string(target.process);
    text_ += std::string(", ") + arch.name + "\n";
    write();
  }

  void begin_module(const std::string& path) override {
    has_nothing_ = false;
    text_ += std::string("\n") + colours_.strong + (path.empty() ? "JIT" : escaped(path)) + colours_.off + "\n";
    write();
  }

  void procedure(const SeenProcedure& procedure) override {
    constexpr std::size_t k_most = 3;
    text_ += "  " + hex(procedure.code.begin) + "  " +
             (procedure.verdict == Verdict::disagrees ? std::string(colours_.bad) + "disagrees" : "undecided") +
             colours_.off + "  " + (procedure.name.empty() ? "?" : escaped(procedure.name)) + "\n";
    // Rows that one instruction has made wrong in the same way are one mistake.
    std::set<std::pair<RegNum, std::optional<Addr>>> mistakes;
    std::size_t left = 0;
    for (const SeenFinding& seen : procedure.findings) {
      const bool is_new = mistakes.size() < k_most && mistakes.emplace(seen.finding.reg, seen.finding.cause).second;
      if (is_new || shows_all_)
        show(seen);
      else
        ++left;
    }
    if (left != 0) text_ += "    and " + std::to_string(left) + " more, --why shows all\n";
    if (procedure.has_more_findings) text_ += "    and more\n";
    write();
  }

  void end_module(const Tally& tally) override {
    text_ += "  " + std::to_string(tally.all()) + (tally.all() == 1 ? " description: " : " descriptions: ") +
             std::to_string(tally.agree) + " agree, " + std::to_string(tally.disagree) + " disagree, " +
             std::to_string(tally.undecided) + " undecided\n";
    char line[160];
    for_each_reason(tally, [&](const char* reason, std::uint64_t count) {
      std::snprintf(line, sizeof line, "  %8" PRIu64 " undecided: %s\n", count, reason);
      text_ += line;
    });
    std::snprintf(line, sizeof line, "  %8" PRIu64 " places where a row was taken at its word\n", tally.assumed);
    if (tally.assumed != 0) text_ += line;
    write();
  }

  // The caller writes errors to stderr.
  void failed(const CheckedTarget&, const TargetError&) override {}
  bool end() override {
    end_target();
    write();
    return std::fflush(stdout) == 0 && is_written_;
  }

 private:
  void end_target() {
    if (std::exchange(has_nothing_, false)) text_ += "  no call frame information\n";
  }
  void show(const SeenFinding& seen) {
    text_ += "    " + text(seen.finding, *arch_);
    if (!seen.instruction.empty()) text_ += std::string(colours_.dim) + "  " + seen.instruction + colours_.off;
    text_ += "\n";
    if (!seen.run) return;
    switch (seen.run->result) {
      case ForcedRun::Result::wrong:
        text_ += "      run: the row is wrong: " + seen.run->why + "\n";
        break;
      case ForcedRun::Result::right:
        text_ += "      run: the row is right\n";
        break;
      case ForcedRun::Result::not_run:
        text_ += "      not run: " + seen.run->why + "\n";
    }
  }
  void write() {
    is_written_ = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() && is_written_;
    text_.clear();
  }

  Colours colours_;
  bool shows_all_;
  const Arch* arch_ = nullptr;
  std::string text_;
  bool is_first_ = true;
  bool has_nothing_ = false;  // of the last target
  bool is_written_ = true;
};

}  // namespace

std::unique_ptr<CheckOutput> check_text_output(const Colours& colours, bool shows_all) {
  return std::make_unique<TextOutput>(colours, shows_all);
}

}  // namespace jitunwind::jitstack

// Writes checks for programs. The keys and their meaning: docs/jitstack.md "JSON".
#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/sdk/jitstack/json_document_p.h"

namespace jitunwind::jitstack {
namespace {

const char* run_name(ForcedRun::Result result) {
  switch (result) {
    case ForcedRun::Result::wrong:
      return "wrong";
    case ForcedRun::Result::right:
      return "right";
    case ForcedRun::Result::not_run:
      break;
  }
  return "not_run";
}

const char* verdict_name(Verdict verdict) {
  return verdict == Verdict::disagrees ? "disagrees" : verdict == Verdict::cannot_tell ? "cannot_tell" : "agrees";
}

class JsonOutput final : public CheckOutput {
 public:
  void begin_target(const CheckedTarget& target, const Arch& arch) override {
    arch_ = &arch;
    begin(target, arch.name, Json());
  }
  void failed(const CheckedTarget& target, const TargetError& error) override {
    begin(target, "", json_of_error(error));
  }

  void begin_module(const std::string& path) override {
    document_.open({{"module", text_or_null(path)}, {"procedures", Json::array()}});
  }

  void procedure(const SeenProcedure& procedure) override {
    Json json{{"name", text_or_null(procedure.name)},
              {"begin", hex(procedure.code.begin)},
              {"end", hex(procedure.code.end)},
              {"verdict", verdict_name(procedure.verdict)},
              {"findings", Json::array()}};
    for (const SeenFinding& seen : procedure.findings) json["findings"].push_back(json_of(seen));
    document_.add(json);
  }

  void end_module(const Tally& tally) override {
    Json reasons = Json::object();
    for_each_reason(tally, [&](const char* reason, std::uint64_t count) { reasons[reason] = count; });
    document_.close({{"checked", tally.all()},
                     {"agree", tally.agree},
                     {"disagree", tally.disagree},
                     {"undecided", tally.undecided},
                     {"assumed", tally.assumed},
                     {"reasons", reasons}});
  }

  bool end() override { return document_.end(); }

 private:
  Json json_of(const SeenFinding& seen) const {
    const CheckFinding& finding = seen.finding;
    const RegisterInfo* const reg = arch_->by_dwarf(finding.reg);
    const bool is_undecided = finding.verdict == Verdict::cannot_tell;
    Json json{{"begin", hex(finding.range.begin)}, {"end", hex(finding.range.end)}};
    json["verdict"] = verdict_name(finding.verdict);
    json["reason"] = is_undecided ? Json(reason_text(finding.why)) : Json();
    json["register"] = finding.reg == arch_->sp ? Json("cfa") : reg ? Json(reg->name) : Json();
    json["row_says"] = text_or_null(finding.row_says);
    json["code_does"] = text_or_null(finding.code_does);
    json["since"] = finding.cause ? Json(hex(*finding.cause)) : Json();
    json["also_wrong"] = Json::array();
    for (const RegNum also : finding.also) json["also_wrong"].push_back(arch_->by_dwarf(also)->name);
    json["instruction"] = text_or_null(seen.instruction);
    if (seen.run) json["run"] = {{"result", run_name(seen.run->result)}, {"why", text_or_null(seen.run->why)}};
    return json;
  }

  void begin(const CheckedTarget& target, const char* cpu, const Json& error) {
    document_.begin_target({{"file", text_or_null(target.file)},
                            {"core", text_or_null(target.core)},
                            {"process", target.process},
                            {"cpu", text_or_null(cpu)},
                            {"error", error},
                            {"modules", Json::array()}});
  }

  TargetsDocument document_;
  const Arch* arch_ = nullptr;
};

}  // namespace

std::unique_ptr<CheckOutput> check_json_output() { return std::make_unique<JsonOutput>(); }

}  // namespace jitunwind::jitstack

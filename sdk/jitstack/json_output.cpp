// Writes stacks for programs. The keys and their meaning: docs/jitstack.md "JSON".
#include <jitunwind/version.h>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"

namespace jitunwind::jitstack {
namespace {

using Json = nlohmann::ordered_json;  // 64-bit numbers are text: readers that have doubles only would round them

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// Writes a document while its lists grow: each open object ends with a list, which gets elements.
class GrowingDocument {
 public:
  /// Begins an object, which becomes an element of the list that is open. `object`'s last member is an empty list.
  void open(const Json& object) {
    std::string text = dumped(object);
    text.resize(text.size() - std::string_view("]\n}").size());
    add_text(text);
    has_elements_.push_back(false);
  }
  void add(const Json& element) { add_text(dumped(element)); }
  /// `further` are members behind the list.
  void close(const Json& further = Json::object()) {
    const std::size_t margin = 4 * (has_elements_.size() - 1);
    if (has_elements_.back()) write("\n" + std::string(margin + 2, ' '));
    has_elements_.pop_back();
    write("]");
    for (const auto& [key, value] : further.items())
      write(",\n" + std::string(margin + 2, ' ') + dumped(key) + ": " + dumped(value));
    write("\n" + std::string(margin, ' ') + "}");
  }
  bool end() {
    write("\n");
    return std::fflush(stdout) == 0 && is_written_;
  }

 private:
  /// Bytes that are not UTF-8 become U+FFFD. The output is ASCII because a terminal also obeys DEL, C1 and characters
  /// that change the direction of writing in JSON.
  static std::string dumped(const Json& json) { return json.dump(2, ' ', true, Json::error_handler_t::replace); }

  void add_text(std::string_view text) {
    if (!has_elements_.empty()) write(has_elements_.back() ? "," : ""), has_elements_.back() = true;
    const std::string line_end = "\n" + std::string(4 * has_elements_.size(), ' ');
    if (!has_elements_.empty()) write(line_end);
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
      write(text.substr(0, end)), write(line_end);
    write(text);
  }
  void write(std::string_view text) {
    is_written_ = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && is_written_;
  }

  std::vector<bool> has_elements_;  // of the lists that are open, the outermost first
  bool is_written_ = true;
};

/// The document of targets, one behind the other.
class TargetsDocument : public GrowingDocument {
 public:
  TargetsDocument() { open({{"format", 1}, {"jitstack", JITUNWIND_VERSION_TEXT}, {"targets", Json::array()}}); }
  /// Ends the target before. `target` is as in open().
  void begin_target(const Json& target) {
    end_target();
    open(target);
    has_target_ = true;
  }
  /// The target gets a member behind its list.
  void add_further(const char* key, const std::string& value) { further_[key] = value; }
  bool end() {
    end_target();
    close();
    return GrowingDocument::end();
  }

 private:
  void end_target() {
    if (std::exchange(has_target_, false)) close(std::exchange(further_, Json::object()));
  }

  bool has_target_ = false;
  Json further_ = Json::object();
};

Json json_of_error(const TargetError& error) {
  return Json{{"reason", reason_name(error.reason)}, {"text", error.text()}};
}

Json json_of(const SeenFrame& frame) {
  Json json{{"number", frame.number}, {"pc", hex(frame.pc)}, {"sp", hex(frame.sp)}};
  json["name"] = text_or_null(frame.name);
  json["offset"] = frame.name.empty() ? Json() : Json(hex(frame.offset));
  json["source"] = text_or_null(frame.source);
  json["module"] = text_or_null(frame.module);
  json["jit"] = frame.is_jit;
  json["origin"] = origin_name(frame.origin);
  json["guess"] = is_guess(frame.origin);
  json["signal_frame"] = frame.is_signal_frame;
  if (!frame.row.empty()) json["row"] = frame.row;
  return json;
}

class JsonOutput final : public Output {
 public:
  void begin_target(const std::string& core, pid_t process, std::size_t) override { begin(core, process, Json()); }

  void begin_samples(const std::string& file, std::size_t) override {
    begin_target("", 0, 0);
    document_.add_further("perf", file);
  }

  void stack(const SeenStack& stack) override {
    Json json{{"id", stack.thread.id}, {"name", stack.thread.name}};
    if (stack.moment) json["process"] = stack.moment->process, json["time"] = stack.moment->time;
    json["signal"] = text_or_null(stack.signal);
    json["fault_address"] = stack.thread.fault_address ? Json(hex(*stack.thread.fault_address)) : Json();
    json["whole"] = stack.is_whole();
    json["stop"] = stop_reason_name(stack.stop);
    json["why"] = stack.why;
    json["frames"] = Json::array();
    document_.open(json);
    stack.for_each(Detail::all, [&](const SeenFrame& frame) { document_.add(json_of(frame)); });
    document_.close();
  }

  void failed(const std::string& core, pid_t process, const TargetError& error) override {
    begin(core, process, json_of_error(error));
  }

  bool end() override { return document_.end(); }

 private:
  void begin(const std::string& core, pid_t process, const Json& error) {
    document_.begin_target(
        {{"core", text_or_null(core)}, {"process", process}, {"error", error}, {"threads", Json::array()}});
  }

  TargetsDocument document_;
};

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

class JsonCheckOutput final : public CheckOutput {
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

std::unique_ptr<Output> json_output() { return std::make_unique<JsonOutput>(); }

/// The C interface has the same names, of codes in the order of the reasons.
const char* reason_name(TargetError::Reason reason) noexcept {
  return ju_status_name(static_cast<ju_status>(JU_NO_PROCESS + static_cast<int>(reason)));
}

std::unique_ptr<CheckOutput> check_json_output() { return std::make_unique<JsonCheckOutput>(); }

}  // namespace jitunwind::jitstack

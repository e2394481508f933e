// Writes stacks for programs. The keys and their meaning: docs/jitstack.md "JSON".
#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/jitstack/json_document_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"

namespace jitunwind::jitstack {
namespace {

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

}  // namespace

std::unique_ptr<Output> json_output() { return std::make_unique<JsonOutput>(); }

/// The C interface has the same names, of codes in the order of the reasons.
const char* reason_name(TargetError::Reason reason) noexcept {
  return ju_status_name(static_cast<ju_status>(JU_NO_PROCESS + static_cast<int>(reason)));
}

}  // namespace jitunwind::jitstack

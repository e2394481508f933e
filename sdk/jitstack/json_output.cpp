// Writes stacks for programs. The keys and their meaning: docs/jitstack.md "JSON".
#include <jitunwind/version.h>

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "jitunwind/sdk/jitstack/output_p.h"

namespace jitunwind::jitstack {
namespace {

using Json = nlohmann::ordered_json;

/// 64-bit numbers are written as text: readers that have doubles only would round them.
std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

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
  void begin_target(const std::string& core, pid_t process, std::size_t) override {
    targets_.push_back(
        {{"core", text_or_null(core)}, {"process", process}, {"error", Json()}, {"threads", Json::array()}});
  }

  void begin_samples(const std::string& file, std::size_t) override {
    begin_target("", 0, 0);
    targets_.back()["perf"] = file;
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
    for (const SeenFrame& frame : stack.frames) json["frames"].push_back(json_of(frame));
    targets_.back()["threads"].push_back(std::move(json));
  }

  void failed(const std::string& core, pid_t process, const TargetError& error) override {
    begin_target(core, process, 0);
    targets_.back()["error"] = {{"reason", reason_name(error.reason)}, {"text", error.text()}};
  }

  bool end() override {
    const Json document{{"format", 1}, {"jitstack", JITUNWIND_VERSION_TEXT}, {"targets", std::move(targets_)}};
    // Bytes that are not UTF-8 become U+FFFD. The output is ASCII because a terminal also obeys DEL, C1 and characters
    // that change the direction of writing in JSON.
    const std::string text = document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  }

 private:
  Json targets_ = Json::array();
};

}  // namespace

std::unique_ptr<Output> json_output() { return std::make_unique<JsonOutput>(); }

const char* reason_name(TargetError::Reason reason) noexcept {
  using Reason = TargetError::Reason;
  switch (reason) {
    case Reason::no_process:
      return "no_process";
    case Reason::zombie:
      return "zombie";
    case Reason::kernel_thread:
      return "kernel_thread";
    case Reason::this_process:
      return "this_process";
    case Reason::traced_by_another:
      return "traced_by_another";
    case Reason::no_permission:
      return "no_permission";
    case Reason::other_architecture:
      return "other_architecture";
    case Reason::no_such_file:
      return "no_such_file";
    case Reason::no_core:
      return "no_core";
    case Reason::core_of_other_program:
      return "core_of_other_program";
    case Reason::no_samples:
      return "no_samples";
  }
  return "unknown";
}

}  // namespace jitunwind::jitstack

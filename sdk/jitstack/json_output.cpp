// Writes stacks for programs. The keys and their meaning: docs/jitstack.md "JSON".
#include <jitunwind/version.h>

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/sdk/c/base.h"
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

class JsonOutput final : public Output {
 public:
  JsonOutput() { document_.open({{"format", 1}, {"jitstack", JITUNWIND_VERSION_TEXT}, {"targets", Json::array()}}); }

  void begin_target(const std::string& core, pid_t process, std::size_t) override { begin(core, process, Json()); }

  void begin_samples(const std::string& file, std::size_t) override {
    begin_target("", 0, 0);
    further_["perf"] = file;
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
    begin(core, process, {{"reason", reason_name(error.reason)}, {"text", error.text()}});
  }

  bool end() override {
    end_target();
    document_.close();
    return document_.end();
  }

 private:
  void begin(const std::string& core, pid_t process, const Json& error) {
    end_target();
    document_.open({{"core", text_or_null(core)}, {"process", process}, {"error", error}, {"threads", Json::array()}});
    has_target_ = true;
  }
  void end_target() {
    if (std::exchange(has_target_, false)) document_.close(std::exchange(further_, Json::object()));
  }

  GrowingDocument document_;
  bool has_target_ = false;
  Json further_ = Json::object();  // members of the target that follow its threads
};

}  // namespace

std::unique_ptr<Output> json_output() { return std::make_unique<JsonOutput>(); }

/// The C interface has the same names, of codes in the order of the reasons.
const char* reason_name(TargetError::Reason reason) noexcept {
  return ju_status_name(static_cast<ju_status>(JU_NO_PROCESS + static_cast<int>(reason)));
}

}  // namespace jitunwind::jitstack

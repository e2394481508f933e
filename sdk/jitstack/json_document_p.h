// A JSON document on standard output, which is written while it grows.
#pragma once

#include <jitunwind/version.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/sdk/jitstack/output_p.h"

namespace jitunwind::jitstack {

using Json = nlohmann::ordered_json;  // 64-bit numbers are text: readers that have doubles only would round them

inline Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

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

inline Json json_of_error(const TargetError& error) {
  return Json{{"reason", reason_name(error.reason)}, {"text", error.text()}};
}

}  // namespace jitunwind::jitstack

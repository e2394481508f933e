#include "examples/orc_calc/stack_trace.h"

#include <jitunwind/jitunwind.h>

#include <algorithm>

namespace calc {
namespace {

/// The result is "calc::native::check" for "calc::native::check(double, double, double) [clone .cold]".
std::string without_parameters(std::string name) {
  name.resize(std::min({name.find('('), name.find(" [clone"), name.size()}));
  return name;
}

/// The author of the code, by the source of its description.
const char* maker(jitunwind::RowOrigin origin) {
  if (origin == jitunwind::RowOrigin::dyn_table) return "LLVM";
  if (origin == jitunwind::RowOrigin::dyn_directives) return "asmjit";
  return "C++";
}

std::string line(const std::string& name, const char* by) {
  std::string text = "  at " + name;
  text.resize(std::max<std::size_t>(text.size() + 1, 30), ' ');
  return text + by;
}

}  // namespace

std::vector<std::string> stack_trace() {
  constexpr std::size_t k_shown_at_each_end = 6;
  std::vector<std::string> lines;
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) {
    const char* const by = maker(frame.origin());
    const std::string name = without_parameters(frame.name());
    const bool is_machinery = by == std::string_view("C++") && !name.starts_with("calc::native::") && name != "main";
    if (is_machinery) continue;
    lines.push_back(line(name.empty() ? "?" : name, by));
    if (name == "main") break;
  }
  if (lines.size() > 2 * k_shown_at_each_end + 1) {
    const auto first = lines.begin() + k_shown_at_each_end;
    const auto last = lines.end() - k_shown_at_each_end;
    const std::string left_out = "  ... " + std::to_string(last - first) + " more ...";
    lines.insert(lines.erase(first, last), left_out);
  }
  return lines;
}

}  // namespace calc

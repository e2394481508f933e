#include "examples/toy_vm/stack_trace.h"

#include <jitunwind/jitunwind.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <string_view>

#include "examples/toy_vm/machine.h"

namespace toy {
namespace {

using namespace std::string_view_literals;

/// The result is "toy::natives::each" for "toy::natives::each(toy::Machine&, toy::Value const*) [clone .cold]".
std::string without_parameters(std::string name) {
  const std::size_t unnamed = name.rfind("(anonymous namespace)");
  const std::size_t from = unnamed == std::string::npos ? 0 : unnamed + 1;
  name.resize(std::min(name.find('(', from), name.size()));
  name.resize(std::min(name.find(" [clone"), name.size()));
  return name;
}

/// The last function of the exception runtime: the throwing function is above it. AddressSanitizer has names with a
/// prefix.
bool throws(std::string_view name) {
  constexpr std::array throwing{"__cxa_throw"sv, "__cxa_rethrow"sv, "_Unwind_RaiseException"sv,
                                "_Unwind_Resume_or_Rethrow"sv, "std::rethrow_exception"sv};
  return std::ranges::any_of(throwing, [&](std::string_view end) { return name.ends_with(end); });
}

/// Functions that run the script, which do not interest its author.
bool is_machinery(std::string_view name) {
  return name == "<script>" || (name.starts_with("toy::") && !name.starts_with("toy::natives::"));
}

}  // namespace

StackTrace trace_of_throw(const Machine& machine) {
  StackTrace trace;
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) {
    std::string name = without_parameters(frame.name());
    if (throws(name)) trace.clear();
    if (throws(name) || is_machinery(name)) continue;
    std::string position = machine.position(frame.pc());
    const bool is_main = name == "main" && position.empty();
    trace.push_back({name.empty() ? "?" : std::move(name), position.empty() ? "C++" : std::move(position)});
    if (is_main) break;
  }
  return trace;
}

std::ostream& operator<<(std::ostream& out, const StackTrace& trace) {
  constexpr std::size_t shown_at_end = 8;
  const bool whole = trace.size() <= 2 * shown_at_end + 1;
  std::size_t width = 0;
  for (const TracedFrame& frame : trace) width = std::max(width, frame.name.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (!whole && i == shown_at_end) {
      i = trace.size() - shown_at_end;
      out << "  ... " << i - shown_at_end << " more ...\n";
    }
    out << "  at " << std::left << std::setw(static_cast<int>(width)) << trace[i].name << "  " << trace[i].place
        << '\n';
  }
  return out;
}

}  // namespace toy

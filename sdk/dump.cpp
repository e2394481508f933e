#include "jitunwind/sdk/dump.h"

#include <array>
#include <new>
#include <span>
#include <vector>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {
namespace {

Line line_of(const Frame& frame) noexcept {
  Line line;
  line.text("#").number(frame.depth()).text(" ").hex(frame.pc()).text(" sp=").hex(frame.sp()).text(" ");
  std::array<char, 160> name;
  if (const auto found = frame.raw_name(name)) {
    line.foreign(name.data());
    line.text("+").hex(frame.pc() - found->start);
  } else {
    line.text("?");
  }
  line.text(" ").text(origin_name(frame.origin()));
  if (frame.is_guess()) line.text(" guess");
  FrameRow row;
  if (!frame.row(row)) return line;
  if (row.signal_frame) line.text(" signal");
  std::array<char, 300> text;
  write_text(row, local_space().arch, text);
  line.text(" ").text(text.data());
  return line;
}

Line end_of(const Walk& walk) noexcept {
  Line line;
  line.text("ended: ").text(stop_reason_name(walk.stop_reason()));
  if (walk.stop_reason() == StopReason::outermost || walk.stop_reason() == StopReason::none) return line;
  const Error& error = walk.stop_error();
  line.text(" (").text(error_name(error.code)).text("): ").text(error.what).text(", at ").hex(error.at);
  return line;
}

/// Calls `put(line)` for each line.
template <class Put>
void tell_walk(Walk& walk, Put put) {
  for (const Frame& frame : walk) put(line_of(frame));
  put(end_of(walk));
}

/// Copies what it needs of each procedure when it hears of it: afterwards other threads may cancel the procedure.
class Listing final : public RegistryObserver {
 public:
  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    try {
      for (const RegisteredProcedure& each : procedures) add(each.key);
    } catch (const std::bad_alloc&) {
      is_complete_ = false;
    }
  }
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
  void retired() noexcept override {}

  const std::vector<Line>& lines() const noexcept { return lines_; }
  bool is_complete() const noexcept { return is_complete_; }

 private:
  void add(RegistrationKey key) {
    AddrRange code;
    Line line;
    {
      const ProcedureHold hold(key);
      if (!hold.info()) return;
      code = code_of(*hold.info());
      const bool by_directives = hold.info()->format == UNW_INFO_FORMAT_DYNAMIC;
      line.range(code.begin, code.end).text(by_directives ? " directives" : " table");
    }
    std::array<char, 300> name;
    ProcedureName found;
    if (find_local_name(CodeAddress::interrupted(code.begin), name, found)) line.text(" ").foreign(name.data());
    lines_.push_back(line);
  }

  std::vector<Line> lines_;
  bool is_complete_ = true;
};

/// Returns false if the registry cannot be listed.
template <class Put>
bool tell_registry(Put put) {
  Listing listing;
  if (!attach_observer(listing)) return false;
  (void)detach_observer(listing);
  if (!listing.is_complete()) return false;
  for (Line line : listing.lines()) put(line);
  Line count;
  count.number(listing.lines().size()).text(" registered");
  put(count);
  return true;
}

void append(std::string& text, const Line& line) {
  text += line.view();
  text += '\n';
}

}  // namespace

void dump_walk(Walk walk, int fd) noexcept {
  tell_walk(walk, [&](Line line) { line.write_to(fd); });
}

std::string walk_text(Walk walk) {
  std::string text;
  tell_walk(walk, [&](const Line& line) { append(text, line); });
  return text;
}

bool dump_registry(int fd) {
  return tell_registry([&](Line line) { line.write_to(fd); });
}

std::string registry_text() {
  std::string text;
  return tell_registry([&](const Line& line) { append(text, line); }) ? text : "";
}

}  // namespace jitunwind

#include "jitunwind/sdk/exceptions/runtime/failure_p.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind::eh {
namespace {

void add_name(Line& line, const UnwindFrame& frame) noexcept {
  std::array<char, 200> text;
  ProcedureName name;
  if (!find_local_name(frame.address(), text, name)) return void(line.text(" (unknown code)"));
  line.text(" (").text(text.data()).text("+").hex(frame.pc() - name.start).text(")");
}

}  // namespace

void report(const char* what, const UnwindFrame& frame, const Error* why) noexcept {
  Line line;
  line.text("jitunwind: ").text(what).text(" at frame ").number(frame.depth()).text(", pc ").hex(frame.pc());
  add_name(line, frame);
  if (why) line.text(": ").text(error_text(why->code)).text(", ").text(why->what).text(" at ").hex(why->at);
  line.write_to(STDERR_FILENO);
}

void give_up(const char* what) noexcept {
  Line line;
  line.text("jitunwind: ").text(what).write_to(STDERR_FILENO);
  std::abort();
}

}  // namespace jitunwind::eh

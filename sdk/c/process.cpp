#include "jitunwind/sdk/c/process.h"

#include <string>

#include "jitunwind/dyn_info/check_procedure.h"
#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/walk.h"
#include "jitunwind/sdk/dump.h"
#include "jitunwind/sdk/statistics.h"

using jitunwind::c::answer;
using jitunwind::c::check_cursor;
using jitunwind::c::frame_of;
using jitunwind::c::info_of;
using jitunwind::c::write_text;

namespace jitunwind::c {
namespace {

ju_table_statistics table_of(const TableStatistics& table) noexcept {
  return {table.hits, table.misses, table.refusals};
}

}  // namespace
}  // namespace jitunwind::c

ju_status ju_statistics_get(ju_statistics* statistics, ju_error* error) {
  const jitunwind::Statistics now = jitunwind::statistics();
  ju_statistics out{};
  out.counts_hits = now.counts_hits;
#define JITUNWIND_TABLE(member, ...) out.member = jitunwind::c::table_of(now.member);
#define JITUNWIND_TABLE_OF_CPP(...)
#define JITUNWIND_NUMBER(member, ...) out.member = now.member;
#include "jitunwind/sdk/statistics_internal.def"
#undef JITUNWIND_TABLE
#undef JITUNWIND_TABLE_OF_CPP
#undef JITUNWIND_NUMBER
  return jitunwind::c::write_struct(out, statistics, "statistics", error);
}

ju_status ju_statistics_text(char* into, size_t room, size_t* length) {
  return answer(nullptr, [&] { return write_text(jitunwind::statistics().text(), into, room, length); });
}

ju_status ju_dump_registry(int fd) {
  return answer(nullptr, [&] { return jitunwind::dump_registry(fd) ? JU_OK : JU_OUT_OF_MEMORY; });
}

void ju_set_log(uint32_t topics, int fd) { jitunwind::set_log(topics, fd); }
int ju_log_fd(void) { return jitunwind::log_fd(); }

ju_status ju_check(const ju_registration* registration, char* into, size_t room, size_t* wrong, size_t* untold) {
  if (!into && room != 0) return JU_NULL_POINTER;
  if (room != 0) into[0] = '\0';
  return answer(nullptr, [&] {
    uint64_t begin = 0;
    if (const ju_status bad = ju_registration_range(registration, &begin, nullptr)) return bad;
    const jitunwind::CheckReport report = jitunwind::check(*info_of(registration));
    std::string text;
    for (const jitunwind::CheckFinding& finding : report.findings)
      text += jitunwind::text(finding, *jitunwind::host_arch(), begin) + "\n";
    (void)write_text(text, into, room, nullptr);
    if (wrong) *wrong = static_cast<size_t>(report.disagreed);
    if (untold) *untold = static_cast<size_t>(report.undecided);
    return report.disagreed == 0 ? JU_OK : JU_CODE_DISAGREES;
  });
}

// Functions of walks whose C++ functions give strings, which the core does without.

ju_status ju_cursor_why(const ju_cursor* cursor, char* into, size_t room, size_t* length) {
  if (const ju_status bad = check_cursor(cursor, nullptr)) return bad;
  return answer(nullptr,
                [&] { return write_text(jitunwind::Walk(frame_of(*cursor).cursor()).why(), into, room, length); });
}

ju_status ju_frame_demangled_name(const ju_cursor* cursor, char* into, size_t room, uint64_t* offset) {
  if (const ju_status bad = ju_frame_name(cursor, nullptr, 0, offset)) return bad;
  return answer(nullptr, [&] { return write_text(frame_of(*cursor).name(), into, room, nullptr); });
}

ju_status ju_dump_walk(const ju_cursor* cursor, int fd) {
  if (const ju_status bad = check_cursor(cursor, nullptr)) return bad;
  jitunwind::dump_walk(jitunwind::Walk(frame_of(*cursor).cursor()), fd);
  return JU_OK;
}

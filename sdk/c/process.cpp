#include "jitunwind/sdk/c/process.h"

#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/dump.h"
#include "jitunwind/sdk/statistics.h"

using jitunwind::c::answer;

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
  return answer(nullptr, [&] { return jitunwind::c::write_text(jitunwind::statistics().text(), into, room, length); });
}

ju_status ju_dump_registry(int fd) {
  return answer(nullptr, [&] { return jitunwind::dump_registry(fd) ? JU_OK : JU_OUT_OF_MEMORY; });
}

void ju_set_log(uint32_t topics, int fd) { jitunwind::set_log(topics, fd); }
int ju_log_fd(void) { return jitunwind::log_fd(); }

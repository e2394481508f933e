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
  out.rows = jitunwind::c::table_of(now.rows);
  out.rows_kept = now.rows_kept;
  out.rows_of_more = now.rows_of_more;
  out.rows_not_compact = now.rows_not_compact;
  out.rows_met_once = now.rows_met_once;
  out.rows_in_table = now.rows_in_table;
  out.guesses = now.guesses;
  out.walks_of_addresses = jitunwind::c::table_of(now.walks_of_addresses);
  out.cies = jitunwind::c::table_of(now.cies);
  out.modules = jitunwind::c::table_of(now.modules);
  out.fdes = jitunwind::c::table_of(now.fdes);
  out.registrations = now.registrations;
  out.cancelled = now.cancelled;
  out.retired = now.retired;
  out.registry_refusals = now.registry_refusals;
  out.cancel_waits = now.cancel_waits;
  out.registered = now.registered;
  out.index_bytes = now.index_bytes;
  out.registry_bytes = now.registry_bytes;
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

// Perf's files in the C interface; sdk/c/process.h.
#include "jitunwind/adapters/perf/perf.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/process.h"

using jitunwind::c::answer;
using jitunwind::c::tell;

ju_status ju_attach_perf(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::attach_perf()); });
}
ju_status ju_detach_perf(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::detach_perf()); });
}

ju_status ju_perf_statistics_get(ju_perf_statistics* statistics, ju_error* error) {
  const jitunwind::PerfStatistics now = jitunwind::perf_statistics();
  ju_perf_statistics out{};
  out.attached = now.attached;
  out.has_map = !now.map.empty();
  out.has_dump = !now.dump.empty();
  out.procedures = now.procedures;
  out.refused = now.refused;
  out.latest_refusal = now.refused == 0 ? JU_OK : jitunwind::c::status_of(now.latest_refusal.code);
  return jitunwind::c::write_struct(out, statistics, "statistics", error);
}

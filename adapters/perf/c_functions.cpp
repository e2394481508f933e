// Perf's files in the C interface; sdk/c/process.h.
#include <cstdint>
#include <vector>

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

ju_status ju_tell_perf_lines(const void* start, size_t size, const ju_source_line* lines, size_t count,
                             ju_error* error) {
  return answer(error, [&] {
    if (!start) return tell(error, JU_NULL_POINTER, "start");
    if (!lines && count != 0) return tell(error, JU_NULL_POINTER, "lines");
    if (count > jitunwind::SourceLines::k_most) return tell(error, JU_INVALID_ARGUMENT, "lines", count);
    std::vector<jitunwind::ToldLine> told(count);
    for (size_t i = 0; i < count; ++i) {
      told[i].offset = lines[i].offset;
      told[i].line = lines[i].line;
      if (!jitunwind::c::read_string(lines[i].file, told[i].file)) return tell(error, JU_BAD_STRING, "lines", i);
    }
    const jitunwind::Addr begin = reinterpret_cast<std::uintptr_t>(start);
    return tell(error, jitunwind::tell_perf_lines({begin, begin + size}, told), "lines");
  });
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

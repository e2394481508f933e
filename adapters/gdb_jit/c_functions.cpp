// Debuggers in the C interface; sdk/c/process.h.
#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/process.h"

using jitunwind::c::answer;
using jitunwind::c::tell;

ju_status ju_attach_gdb(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::attach_gdb()); });
}
ju_status ju_detach_gdb(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::detach_gdb()); });
}
ju_status ju_flush_gdb(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::flush_gdb()); });
}

ju_status ju_gdb_statistics_get(ju_gdb_statistics* statistics, ju_error* error) {
  const jitunwind::GdbStatistics now = jitunwind::gdb_statistics();
  ju_gdb_statistics out{};
  out.attached = now.attached;
  out.copies = now.copies;
  out.procedures = now.procedures;
  out.waiting = now.waiting;
  out.files = now.files;
  out.bytes = now.bytes;
  out.refused = now.refused;
  out.latest_refusal = now.refused == 0 ? JU_OK : jitunwind::c::status_of(now.latest_refusal.code);
  return jitunwind::c::write_struct(out, statistics, "statistics", error);
}

// The check in the C interface; <jitunwind/c_testing.h>.
#include <cstring>
#include <new>
#include <vector>

#include "jitunwind/adapters/testing/check_by_stepping.h"
#include "jitunwind/c_testing.h"

ju_status ju_check_by_stepping(const ju_range* code, size_t count, int (*run)(void* data), void* data, char* into,
                               size_t room, size_t* not_run) {
  if ((code == nullptr && count != 0) || run == nullptr || (into == nullptr && room != 0)) return JU_NULL_POINTER;
  try {
    std::vector<jitunwind::AddrRange> ranges;
    for (size_t i = 0; i < count; ++i) ranges.push_back({code[i].begin, code[i].end});
    const jitunwind::SteppingReport report = jitunwind::check_by_stepping(ranges, [=] { return run(data); });
    if (not_run != nullptr) *not_run = report.not_run.size();
    const std::string text = report.text();
    if (room != 0) into[text.copy(into, room - 1)] = '\0';
    if (report.wrong != 0) return JU_BAD_FRAME;
    return report ? JU_OK : JU_INVALID_ARGUMENT;
  } catch (const std::bad_alloc&) {
    return JU_OUT_OF_MEMORY;
  }
}

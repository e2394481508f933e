#include "jitunwind/adapters/system_unwinder/probe_p.h"

#include "jitunwind/dyn_info/registry/system_unwinder_seam_internal.h"

namespace jitunwind {
namespace {

// Unwinders call back on the thread of the caller. Lookups by other threads, through other copies of libgcc_s, prove
// nothing.
constinit thread_local bool probe_has_come = false;

}  // namespace

constinit std::byte probe_place[2]{};
constinit std::atomic<unsigned> own_runtime_questions{0};

void note_probe() noexcept { probe_has_come = true; }

bool question_arrives(FindEnclosingFunction* ask) noexcept {
  if (ask == nullptr) return false;
  const unsigned before = own_runtime_questions.load(std::memory_order_relaxed);
  probe_has_come = false;
  (void)ask(&probe_place[1]);
  return probe_has_come || own_runtime_questions.load(std::memory_order_relaxed) != before;
}

}  // namespace jitunwind

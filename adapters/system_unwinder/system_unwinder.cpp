#include "adapters/system_unwinder/system_unwinder.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "adapters/system_unwinder/find_fde_p.h"
#include "adapters/system_unwinder/probe_p.h"
#include "adapters/system_unwinder/refusals_p.h"
#include "dyn_info/system_unwinder_seam_p.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {
namespace {

/// No code. The unwinder may look at the byte before the address that it is asked about.
constinit std::array<std::byte, 2> probe_place{};
constinit std::atomic<bool> probe_seen{false};

/// Whether a question to the unwinder arrives at our definition.
bool is_interposed() noexcept {
  probe_seen.store(false, std::memory_order_relaxed);
  (void)_Unwind_FindEnclosingFunction(&probe_place[1]);
  return probe_seen.load(std::memory_order_relaxed);
}

void attach_once() noexcept { next_find_fde().resolve(); }

}  // namespace

bool is_probe(const void* pc) noexcept {
  if (pc < &probe_place[0] || pc > &probe_place[1]) return false;
  probe_seen.store(true, std::memory_order_relaxed);
  return true;
}

void attach_system_unwinder() noexcept {
  constinit static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { attach_once(); });
  if (next_find_fde().wanted()) next_find_fde().resolve();
}

SystemUnwinderStatus system_unwinder_status() noexcept {
  attach_system_unwinder();
  SystemUnwinderStatus status;
  next_find_fde().resolve();
  status.has_next = next_find_fde().known();
  const Refusals all = refusals();
  status.refused = all.count;
  status.latest_refusal = all.latest;
  if (&_Unwind_FindEnclosingFunction == nullptr) {
    status.why = "no unwinder is linked";
  } else if (is_interposed()) {
    status.path = SystemUnwinderPath::interposed;
    status.why = "the unwinder asks _Unwind_Find_FDE of this library";
  } else {
    status.why = "the unwinder does not ask _Unwind_Find_FDE of this library";
  }
  return status;
}

const char* path_name(SystemUnwinderPath path) noexcept {
  return path == SystemUnwinderPath::interposed ? "interposed" : "none";
}

}  // namespace jitunwind

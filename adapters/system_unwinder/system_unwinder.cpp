#include "adapters/system_unwinder/system_unwinder.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "adapters/system_unwinder/find_fde_p.h"
#include "adapters/system_unwinder/frame_tables_p.h"
#include "adapters/system_unwinder/probe_p.h"
#include "adapters/system_unwinder/refusals_p.h"
#include "dyn_info/system_unwinder_seam_p.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {
namespace {

/// Whether a question to the unwinder arrives at our definition. One that another thread has asked meanwhile is as
/// good.
bool is_interposed() noexcept {
  const unsigned before = probes_seen.load(std::memory_order_relaxed);
  (void)_Unwind_FindEnclosingFunction(&probe_place[1]);
  return probes_seen.load(std::memory_order_relaxed) != before;
}

constinit pthread_once_t attached = PTHREAD_ONCE_INIT;
constinit std::atomic<FrameContract> contract{FrameContract::none};

// For an unwinder that does not ask. Never destroyed: static objects of others cancel at exit.

constinit pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<bool> some_retired{false};
FrameTables* tables = nullptr;
alignas(FrameTables) std::byte tables_memory[sizeof(FrameTables)];

/// `change`, with the tables to itself.
template <class Change>
void with_tables(Change change) noexcept {
  pthread_mutex_lock(&tables_lock);
  try {
    // Code that was retired may be somebody else's by now.
    if (some_retired.exchange(false)) tables->remove_all_gone();
    change(*tables);
  } catch (const std::bad_alloc&) {
    note_refusal({ErrorCode::out_of_memory, 0, "no memory for the unwinder's tables"});
  }
  pthread_mutex_unlock(&tables_lock);
}

void start_telling(FrameContract found) noexcept {
  tables = new (tables_memory) FrameTables(found);
  contract.store(found, std::memory_order_release);
  const auto lock = [] { pthread_mutex_lock(&tables_lock); };
  const auto unlock = [] { pthread_mutex_unlock(&tables_lock); };
  (void)pthread_atfork(lock, unlock, unlock);
  unwinder_is_told.store(true, std::memory_order_release);
}

void attach_once() noexcept {
  next_find_fde().resolve();
  if (&_Unwind_FindEnclosingFunction == nullptr || is_interposed()) return;
  const FrameContract found = find_frame_contract();
  if (found != FrameContract::none) start_telling(found);
}

}  // namespace

void attach_system_unwinder() noexcept {
  pthread_once(&attached, [] { attach_once(); });
  if (next_find_fde().wanted()) next_find_fde().resolve();
}

void tell_registered(std::span<unw_dyn_info_t* const> procedures) noexcept {
  with_tables([&](FrameTables& all) { all.add(procedures); });
}

void tell_cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept {
  with_tables([&](FrameTables& all) { all.remove(procedures); });
}

void tell_retired() noexcept { some_retired.store(true); }

SystemUnwinderStatus system_unwinder_status() noexcept {
  attach_system_unwinder();
  next_find_fde().resolve();
  SystemUnwinderStatus status;
  status.has_next = next_find_fde().known();
  const Refusals all = refusals();
  status.refused = all.count;
  status.latest_refusal = all.latest;
  const FrameContract told = contract.load(std::memory_order_acquire);
  if (&_Unwind_FindEnclosingFunction == nullptr) {
    status.why = "no unwinder is linked";
  } else if (told == FrameContract::section) {
    status.path = SystemUnwinderPath::registered_sections;
    status.why =
        "the unwinder asks another _Unwind_Find_FDE, and its __register_frame takes sections, as libgcc's does";
  } else if (told == FrameContract::fde) {
    status.path = SystemUnwinderPath::registered_fdes;
    status.why = "the unwinder asks no _Unwind_Find_FDE, and its __register_frame takes one FDE, as LLVM's does";
  } else if (is_interposed()) {
    status.path = SystemUnwinderPath::interposed;
    status.why = "the unwinder asks _Unwind_Find_FDE of this library";
  } else {
    status.why =
        "the unwinder asks no _Unwind_Find_FDE of this library, nor does it know what __register_frame is given";
  }
  return status;
}

const char* path_name(SystemUnwinderPath path) noexcept {
  switch (path) {
    case SystemUnwinderPath::none:
      return "none";
    case SystemUnwinderPath::interposed:
      return "interposed";
    case SystemUnwinderPath::registered_sections:
      return "registered sections";
    case SystemUnwinderPath::registered_fdes:
      return "registered FDEs";
  }
  return "?";
}

}  // namespace jitunwind

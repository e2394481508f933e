#include "adapters/system_unwinder/system_unwinder.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "adapters/system_unwinder/find_fde_p.h"
#include "adapters/system_unwinder/frame_tables_p.h"
#include "adapters/system_unwinder/probe_p.h"
#include "adapters/system_unwinder/refusals_p.h"
#include "dyn_info/observers_p.h"
#include "dyn_info/system_unwinder_seam_p.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {

constinit std::atomic<unsigned> own_runtime_questions{0};

namespace {

/// Whether a question to the unwinder arrives at our definition. One that another thread has asked meanwhile is as
/// good.
bool is_interposed() noexcept {
  const unsigned before = probes_seen.load(std::memory_order_relaxed);
  (void)_Unwind_FindEnclosingFunction(&probe_place[1]);
  return probes_seen.load(std::memory_order_relaxed) != before;
}

bool is_own_runtime() noexcept {
  const unsigned before = own_runtime_questions.load(std::memory_order_relaxed);
  (void)_Unwind_FindEnclosingFunction(&probe_place[1]);
  return own_runtime_questions.load(std::memory_order_relaxed) != before;
}

constinit pthread_once_t attached = PTHREAD_ONCE_INIT;
constinit std::atomic<FrameContract> contract{FrameContract::none};

/// For an unwinder that does not ask. Never destroyed: static objects of others cancel at exit.
class Teller final : public RegistryObserver {
 public:
  explicit Teller(FrameContract contract) noexcept : tables_(contract) {}

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    change([&] {
      std::vector<unw_dyn_info_t*> infos;
      for (const RegisteredProcedure& procedure : procedures) infos.push_back(procedure.info);
      tables_.add(infos);
    });
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    change([&] { tables_.remove(procedures); });
  }
  void retired() noexcept override {
    change([&] { tables_.remove_all_gone(); });
  }

 private:
  template <class Change>
  static void change(Change change) noexcept {
    try {
      change();
    } catch (const std::bad_alloc&) {
      note_refusal({ErrorCode::out_of_memory, 0, "no memory for the unwinder's tables"});
    }
  }

  FrameTables tables_;
};

alignas(Teller) std::byte teller_memory[sizeof(Teller)];

void start_telling(FrameContract found) noexcept {
  auto* const teller = new (teller_memory) Teller(found);
  contract.store(found, std::memory_order_release);
  const ObserversScope scope;
  (void)attach_in_scope(*teller);
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

SystemUnwinderStatus system_unwinder_status() noexcept {
  {
    const WritingScope writing;
    attach_system_unwinder();
  }
  next_find_fde().resolve();
  SystemUnwinderStatus status;
  status.has_next = next_find_fde().known();
  const Refusals all = refusals();
  status.refused = all.count;
  status.latest_refusal = all.latest;
  const FrameContract told = contract.load(std::memory_order_acquire);
  if (&_Unwind_FindEnclosingFunction == nullptr) {
    status.why = "no unwinder is linked";
  } else if (is_own_runtime()) {
    status.path = SystemUnwinderPath::own_runtime;
    status.why = "the unwinder is libjitunwind-eh, which looks registered procedures up itself";
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
    case SystemUnwinderPath::own_runtime:
      return "own runtime";
  }
  return "?";
}

}  // namespace jitunwind

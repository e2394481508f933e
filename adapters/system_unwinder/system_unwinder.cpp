#include "jitunwind/adapters/system_unwinder/system_unwinder.h"

#include <atomic>

#include "jitunwind/adapters/system_unwinder/find_fde/jump_slots_p.h"
#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"
#include "jitunwind/adapters/system_unwinder/frames/frame_tables_p.h"
#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/trace/log.h"

extern "C" [[gnu::weak]] jitunwind::FindEnclosingFunction _Unwind_FindEnclosingFunction;

namespace jitunwind {

constinit std::atomic<FrameContract> told_contract{FrameContract::none};

namespace {

bool is_own_runtime() noexcept {
  const unsigned before = own_runtime_questions.load(std::memory_order_relaxed);
  return question_arrives(&_Unwind_FindEnclosingFunction) &&
         own_runtime_questions.load(std::memory_order_relaxed) != before;
}

constinit std::atomic<bool> attached{false};
constinit std::atomic<bool> by_slot{false};
constinit std::atomic<std::uint64_t> loads_seen{0};
constinit thread_local unsigned registrations = 0;

/// The number is too low while a file of this library's own is being loaded: then look() comes once more.
std::uint64_t others_loads() noexcept { return list_version().loads - own_loads.load(std::memory_order_acquire); }

/// Any thread may come here at any time. A thread that waits for another one's dlopen(), which may be in a constructor
/// that registers, must not keep that thread from doing the same.
void look() noexcept {
  const std::uint64_t loads = others_loads();
  const bool arrived = question_arrives(&_Unwind_FindEnclosingFunction);
  jump_slots.look();
  loads_seen.store(jump_slots.seen().again ? 0 : loads, std::memory_order_relaxed);
  if (arrived || &_Unwind_FindEnclosingFunction == nullptr) return;
  if (question_arrives(&_Unwind_FindEnclosingFunction))
    by_slot.store(true, std::memory_order_relaxed);
  else if (is_above(start_telling))
    start_telling();
}

/// Another copy of libgcc_s may have been loaded. The check runs once per 256 registrations, since it takes as long as
/// registering.
bool is_time_to_look() noexcept {
  constexpr unsigned k_every = 256;
  return ++registrations % k_every == 0 && others_loads() != loads_seen.load(std::memory_order_relaxed);
}

/// Binds the unwinder's jump slot now, by the thread that loads this library. If another thread used the slot first,
/// the dynamic linker would record that libgcc_s depends on this library, and wait with that until constructors have
/// returned; these may wait for that thread.
[[gnu::constructor(101)]] void bind_at_load() { (void)question_arrives(&_Unwind_FindEnclosingFunction); }

/// The path and its reason.
SystemUnwinderStatus path_found() noexcept {
  SystemUnwinderStatus status;
  const FrameContract told = told_contract.load(std::memory_order_acquire);
  if (&_Unwind_FindEnclosingFunction == nullptr) {
    status.why = "no unwinder is linked";
  } else if (is_own_runtime()) {
    status.path = SystemUnwinderPath::own_runtime;
    status.why = "the unwinder is libjitunwind-eh, which looks registered procedures up itself";
  } else if (told == FrameContract::section) {
    status.path = SystemUnwinderPath::registered_sections;
    status.why =
        "the unwinder asks another _Unwind_Find_FDE, and its __register_frame takes sections, as that of libgcc 12 "
        "does";
  } else if (told == FrameContract::unique_section) {
    status.path = SystemUnwinderPath::registered_fdes;
    status.why =
        "the unwinder asks another _Unwind_Find_FDE, and its __register_frame takes one section an address, as that of "
        "libgcc 13 and newer does";
  } else if (told == FrameContract::fde) {
    status.path = SystemUnwinderPath::registered_fdes;
    status.why = "the unwinder asks no _Unwind_Find_FDE, and its __register_frame takes one FDE, as LLVM's does";
  } else if (!question_arrives(&_Unwind_FindEnclosingFunction)) {
    status.why =
        "the unwinder asks no _Unwind_Find_FDE of this library, nor does it know what __register_frame is given";
  } else if (by_slot.load(std::memory_order_relaxed)) {
    status.path = SystemUnwinderPath::jump_slot;
    status.why = "the unwinder asks another _Unwind_Find_FDE, by its jump slot, which leads here now";
  } else {
    status.path = SystemUnwinderPath::interposed;
    status.why = "the unwinder asks _Unwind_Find_FDE of this library";
  }
  return status;
}

[[gnu::cold, gnu::noinline]] void log_path() noexcept {
  const SystemUnwinderStatus status = path_found();
  LogLine(LogTopic::registry).text("C++ exceptions: ").text(path_name(status.path)).text(", ").text(status.why);
}

}  // namespace

void attach_system_unwinder() noexcept {
  if (!attached.load(std::memory_order_acquire)) {
    look();
    // A program that registers code walks it, perhaps in a signal handler.
    if (const RowCache* const kept = local_space().row_cache) kept->rules.touch();
    attached.store(true, std::memory_order_release);
    if (logs(LogTopic::registry)) log_path();
  } else if (!jump_slots.are_as_left() || is_time_to_look()) {
    look();
  }
  if (next_find_fde().wanted()) next_find_fde().resolve();
}

bool has_other_personality(const void* pc) noexcept {
  EhBases bases{};
  const void* const at = next_find_fde().find(const_cast<void*>(pc), &bases, nullptr);
  if (at == nullptr) return false;
  MemoryWindow window;
  MemoryView bytes(local_space().memory, window, {});
  const CfiContext context{
      .arch = local_space().arch, .text_base = address_of(bases.text), .data_base = address_of(bases.data)};
  const Result<Fde> fde = read_fde(bytes, context, address_of(at));
  return fde && fde->cie.personality.value != 0;
}

SystemUnwinderStatus system_unwinder_status() noexcept {
  {
    const WritingScope writing;
    attach_system_unwinder();
    look();  // examines the objects loaded since
  }
  next_find_fde().resolve();
  SystemUnwinderStatus status = path_found();
  status.has_next = next_find_fde().known();
  const JumpSlots::Seen seen = jump_slots.seen();
  status.slots = seen.taken;
  status.unreached = seen.unreached;
  status.why_unreached = seen.why;
  const Refusals all = refusals();
  status.refused = all.count;
  status.latest_refusal = all.latest;
  return status;
}

const char* path_name(SystemUnwinderPath path) noexcept {
  switch (path) {
    case SystemUnwinderPath::none:
      return "none";
    case SystemUnwinderPath::interposed:
      return "interposed";
    case SystemUnwinderPath::jump_slot:
      return "jump slot";
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

// Functions of libunwind.so.8 besides those of libunwind.h: registration in the layout of that release, and the few
// others that programs import.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/compat/drop_in/release_1_6_p.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/walk/resume.h"

#include <libunwind.h>

namespace {

// Links of a descriptor belong to the library. Here they point to its shadow, the descriptor that is registered in its
// place, and hold the shadow's state.
using jitunwind::release_1_6::DynInfo;

/// Values of `shadow_state`: a thread is changing the shadow; the shadow is registered. Before that it may hold any
/// other value. The two values depend on the descriptor's address, so a copy of the descriptor does not have them.
struct States {
  explicit States(const DynInfo* info) noexcept
      : changing(reinterpret_cast<std::uintptr_t>(info) ^ 0x6a69'7475'6368'616e),
        registered(reinterpret_cast<std::uintptr_t>(info) ^ 0x6a69'7475'6e77'6e64) {}
  std::uintptr_t changing;
  std::uintptr_t registered;
};

std::atomic_ref<std::uintptr_t> state_of(DynInfo& info) noexcept {
  return std::atomic_ref<std::uintptr_t>(info.shadow_state);
}

unw_dyn_info_t* register_shadow(const DynInfo& info) noexcept {
  auto* const shadow = jitunwind::make_on_heap<unw_dyn_info_t>(in_todays_layout(info));
  if (!shadow || jitunwind::register_procedure(shadow)) return shadow;
  jitunwind::destroy_on_heap(shadow);
  return nullptr;
}

struct Leb128 {
  unw_word_t value = 0;
  unsigned bits = 0;
  bool is_negative = false;  ///< the last byte has the sign
};

Leb128 read_leb128(unsigned char*& at) noexcept {
  Leb128 read;
  for (bool more = true; more; read.bits += 7) {
    const unsigned char byte = *at++;
    if (read.bits < 64) read.value |= static_cast<unw_word_t>(byte & 0x7f) << read.bits;
    read.is_negative = (byte & 0x40) != 0;
    more = (byte & 0x80) != 0;
  }
  return read;
}

}  // namespace

extern "C" {

// The interface cannot report errors: a refused descriptor is ignored.
[[gnu::visibility("default")]] void jitunwind_drop_in_register(DynInfo* info) asm("_U_dyn_register");
[[gnu::visibility("default")]] void jitunwind_drop_in_cancel(DynInfo* info) asm("_U_dyn_cancel");

// If several threads register or cancel one descriptor at the same time, one does it, and the others return without
// waiting.
void jitunwind_drop_in_register(DynInfo* info) {
  if (!info) return;
  const States states(info);
  const std::atomic_ref<std::uintptr_t> state = state_of(*info);
  std::uintptr_t free = state.load(std::memory_order_acquire);
  if (free == states.registered || free == states.changing) return;
  if (!state.compare_exchange_strong(free, states.changing, std::memory_order_acq_rel)) return;
  info->shadow = register_shadow(*info);
  state.store(info->shadow ? states.registered : 0, std::memory_order_release);
}

void jitunwind_drop_in_cancel(DynInfo* info) {
  if (!info) return;
  const States states(info);
  const std::atomic_ref<std::uintptr_t> state = state_of(*info);
  std::uintptr_t registered = states.registered;
  if (!state.compare_exchange_strong(registered, states.changing, std::memory_order_acq_rel)) return;
  auto* const shadow = static_cast<unw_dyn_info_t*>(info->shadow);
  if (!jitunwind::cancel_procedure(shadow)) {
    state.store(states.registered, std::memory_order_release);
    return;
  }
  info->shadow = nullptr;
  state.store(0, std::memory_order_release);
  jitunwind::destroy_on_heap(shadow);
}

/// Replaces glibc's function of this name, and passes code made at run time.
[[gnu::weak, gnu::visibility("default")]] int backtrace(void** addresses, int size) {
  const std::size_t room = addresses && size > 0 ? static_cast<std::size_t>(size) : 0;
  return static_cast<int>(jitunwind::backtrace({addresses, room}));
}

/// DWARF 5, 7.6. The pointer is moved behind the number.
[[gnu::visibility("default")]] unw_word_t _ReadULEB(unsigned char** at) { return read_leb128(*at).value; }

[[gnu::visibility("default")]] unw_word_t _ReadSLEB(unsigned char** at) {
  const Leb128 read = read_leb128(*at);
  return read.is_negative && read.bits < 64 ? read.value | ~unw_word_t{0} << read.bits : read.value;
}

/// Resumes at the context's pc.
[[gnu::visibility("default")]] int UNW_ARCH_OBJ(setcontext)(const unw_context_t* context) {
  jitunwind_restore_context(context, 0);
}
}

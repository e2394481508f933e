#include "jitunwind/adapters/listen/publish/mapping_gate_p.h"

#include <atomic>
#include <cstdint>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constinit std::atomic<std::uint32_t> calls_inside{0};
constinit std::atomic<bool> closed{false};
constinit thread_local bool closes = false;  // this thread has closed it

constexpr long k_wait = 20'000;  // nanoseconds; a moment has some 50'000 for 64 KiB

}  // namespace

// A call that enters either sees that the gate is closed, or is seen by the thread that closes it: both write first and
// then read.

MappingMoment::MappingMoment() noexcept {
  closed.store(true, std::memory_order_seq_cst);
  is_closed_ = calls_inside.load(std::memory_order_seq_cst) == 0;
  closes = is_closed_;
  if (!is_closed_) closed.store(false, std::memory_order_release);
}

MappingMoment::~MappingMoment() {
  closes = false;
  if (is_closed_) closed.store(false, std::memory_order_release);
}

void enter_mapping_gate() noexcept {
  for (;;) {
    calls_inside.fetch_add(1, std::memory_order_seq_cst);
    if (!closed.load(std::memory_order_seq_cst)) return;
    calls_inside.fetch_sub(1, std::memory_order_release);
    const ErrnoKeeper keep_errno;
    while (closed.load(std::memory_order_acquire)) sleep_for_nanoseconds(k_wait);
  }
}

void leave_mapping_gate() noexcept { calls_inside.fetch_sub(1, std::memory_order_release); }

MappingCall::MappingCall() noexcept : is_of_program_(!closes) {
  if (is_of_program_) enter_mapping_gate();
}

MappingCall::~MappingCall() {
  if (is_of_program_) leave_mapping_gate();
}

void forget_mapping_calls_in_child() noexcept {
  calls_inside.store(0, std::memory_order_relaxed);
  closed.store(false, std::memory_order_relaxed);
}

}  // namespace jitunwind

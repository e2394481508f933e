#include "jitunwind/adapters/symbolizers/symbolizers_p.h"

#include <atomic>

#include "jitunwind/unwind_core/errno_keeper_internal.h"

#pragma weak dlsym  // a static program has none

namespace jitunwind {
namespace {

constinit NextSymbolizers next;
constinit std::atomic<bool> is_known{false};

template <class Function>
void find(Function*& function, const char* name) noexcept {
  if (&dlsym != nullptr) function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Threads that come here at once write the same values.
[[gnu::constructor(101)]] void find_at_load() {
  const ErrnoKeeper keep_errno;
  NextSymbolizers found;
  find(found.dladdr, "dladdr");
  find(found.dladdr1, "dladdr1");
  find(found.backtrace_symbols, "backtrace_symbols");
  find(found.backtrace_symbols_fd, "backtrace_symbols_fd");
  next = found;
  is_known.store(true, std::memory_order_release);
}

}  // namespace

const NextSymbolizers& next_symbolizers() noexcept {
  // Constructors of other libraries may call earlier, while there are no other threads.
  if (!is_known.load(std::memory_order_acquire)) find_at_load();
  return next;
}

}  // namespace jitunwind

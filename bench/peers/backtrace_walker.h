// A walk by _Unwind_Backtrace(), of any run-time library that has it.
#pragma once

#include <unwind.h>

#include "bench/peer.h"

namespace bench {

inline std::size_t level_one_backtrace(std::span<void*> into) {
  struct Progress {
    std::span<void*> into;
    std::size_t count;
  } progress{into, 0};
  const auto store = [](_Unwind_Context* context, void* argument) {
    auto& to = *static_cast<Progress*>(argument);
    to.into[to.count++] = reinterpret_cast<void*>(_Unwind_GetIP(context));
    return to.count == to.into.size() ? _URC_NORMAL_STOP : _URC_NO_REASON;
  };
  _Unwind_Backtrace(store, &progress);
  return progress.count;
}

}  // namespace bench

#include "jitunwind/builders/frame_handler.h"

#include <atomic>

namespace jitunwind {

FrameDecision& FrameDecision::with(RegNum dwarf, std::uint64_t value) {
  registers_.push_back({dwarf, value});
  return *this;
}

FrameHandler::FrameHandler(const FrameHandler& other) noexcept : function_(other.function_) {
  if (function_) std::atomic_ref(function_->users).fetch_add(1, std::memory_order_relaxed);
}

FrameHandler::~FrameHandler() {
  if (function_ && std::atomic_ref(function_->users).fetch_sub(1, std::memory_order_acq_rel) == 1) delete function_;
}

}  // namespace jitunwind

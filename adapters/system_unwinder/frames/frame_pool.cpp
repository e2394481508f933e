#include "jitunwind/adapters/system_unwinder/frames/frame_pool_p.h"

#include <new>

namespace jitunwind {

std::byte* FramePool::take(std::size_t size) {
  if (size > k_largest) return static_cast<std::byte*>(::operator new(size));
  const std::size_t units = (size + k_unit - 1) / k_unit;
  if (Free* const block = free_[units]) {
    free_[units] = block->next;
    return reinterpret_cast<std::byte*>(block);
  }
  if (left_ < units * k_unit) {
    chunks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[k_chunk]));
    next_ = chunks_.back().get();
    left_ = k_chunk;
  }
  left_ -= units * k_unit;
  next_ += units * k_unit;
  return next_ - units * k_unit;
}

void FramePool::give_back(std::byte* block, std::size_t size) noexcept {
  if (size > k_largest) return ::operator delete(block);
  Free*& first = free_[(size + k_unit - 1) / k_unit];
  first = new (block) Free{first};
}

}  // namespace jitunwind

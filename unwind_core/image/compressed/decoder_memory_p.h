// Memory for decoders, which would otherwise call malloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

namespace jitunwind {

/// The few allocations of a decoder. Each is a mapping of its own.
class DecoderMemory {
 public:
  void* allocate(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    const auto free_block = std::ranges::find_if(blocks_, &Block::empty);
    if (free_block == blocks_.end() || __builtin_mul_overflow(count, size, &bytes) || bytes == 0) return nullptr;
    *free_block = Block(bytes);
    return free_block->bytes().data();
  }
  void release(void* memory) noexcept {
    for (Block& block : blocks_)
      if (memory && block.bytes().data() == memory) Block(std::move(block));
  }

 private:
  std::array<Block, 24> blocks_;  // zlib makes 2, libzstd 1, liblzma under 10
};

/// Functions for the decoders' interfaces. Both take a DecoderMemory as their first argument.
template <class Count>
void* allocate_for_decoder(void* memory, Count count, Count size) {
  return static_cast<DecoderMemory*>(memory)->allocate(count, size);
}
inline void release_of_decoder(void* memory, void* block) { static_cast<DecoderMemory*>(memory)->release(block); }

}  // namespace jitunwind

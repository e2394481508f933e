#include "unwind_core/memory/memory.h"

namespace jitunwind {

Result<std::uint64_t> read_unsigned(const Memory& memory, MemoryWindow& window, Addr at, std::size_t size,
                                    bool big_endian, const char* what) noexcept {
  std::array<std::byte, 8> bytes;
  if (size == 0 || size > bytes.size()) return Error{ErrorCode::invalid_argument, at, what};
  if (memory.read(at, std::span(bytes).first(size), window) != size)
    return Error{ErrorCode::unreadable_memory, at, what};
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from = big_endian ? i : size - 1 - i;
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[from]);
  }
  return value;
}

Result<std::uint64_t> read_word(const Memory& memory, MemoryWindow& window, Addr at, const Arch& arch,
                                const char* what) noexcept {
  return read_unsigned(memory, window, at, arch.word_size, arch.big_endian, what);
}

}  // namespace jitunwind

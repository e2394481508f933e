#include "jitunwind/unwind_core/memory/memory.h"

#include <algorithm>

#include "jitunwind/unwind_core/memory/bytes.h"

namespace jitunwind {

Error callback_error(std::int32_t returned, const char* what) noexcept {
  const std::int64_t negative = returned < 0 ? returned : -1;
  return {ErrorCode::callback_failed, static_cast<Addr>(negative), what};
}

std::int32_t callback_result(const Error& error) noexcept {
  return error.code == ErrorCode::callback_failed ? static_cast<std::int32_t>(static_cast<std::int64_t>(error.at)) : 0;
}

Error unreadable(const MemoryWindow& window, Addr at, const char* what) noexcept {
  if (window.failure != 0) return callback_error(window.failure, what);
  return {ErrorCode::unreadable_memory, at, what};
}

Result<std::uint64_t> read_unsigned(const Memory& memory, MemoryWindow& window, Addr at, std::size_t size,
                                    bool big_endian, const char* what) noexcept {
  std::array<std::byte, 8> bytes;
  if (size == 0 || size > bytes.size()) return Error{ErrorCode::invalid_argument, at, what};
  if (memory.read(at, std::span(bytes).first(size), window) != size) return unreadable(window, at, what);
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

Status write_word(const Memory& memory, MemoryWindow& window, Addr at, std::uint64_t value, const Arch& arch,
                  const char* what) noexcept {
  std::array<std::byte, 8> bytes;
  const std::size_t size = arch.word_size;
  for (std::size_t i = 0; i < size; ++i)
    bytes[arch.big_endian ? size - 1 - i : i] = static_cast<std::byte>(value >> (8 * i));
  if (!memory.write(at, std::span(bytes).first(size), window)) {
    if (window.failure != 0) return callback_error(window.failure, what);
    return Error{ErrorCode::read_only_register, at, what};
  }
  return Done{};
}

std::size_t BytesMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    const auto piece = std::ranges::find_if(pieces_, [&](const Piece& p) { return next - p.address < p.bytes.size(); });
    if (piece == pieces_.end()) break;
    const auto bytes = piece->bytes.subspan(static_cast<std::size_t>(next - piece->address));
    const std::size_t size = std::min(bytes.size(), into.size() - done);
    std::copy_n(bytes.begin(), size, into.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
  }
  return done;
}

}  // namespace jitunwind

// Writes numbers into a fixed buffer. It never writes behind the end but continues to count, so a first pass without a
// buffer yields the size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#pragma GCC visibility push(default)
namespace jitunwind {

/// A writer of numbers. Bytes that do not fit are counted and not written.
class ByteWriter {
 public:
  ByteWriter(std::span<std::byte> into, bool big_endian) noexcept : into_(into), big_endian_(big_endian) {}

  /// The number of bytes written, including those that did not fit.
  std::size_t size() const noexcept { return size_; }
  bool fits() const noexcept { return size_ <= into_.size(); }

  /// Writes one byte, the lowest of the value.
  void u8(std::uint64_t value) noexcept {
    if (size_ < into_.size()) into_[size_] = static_cast<std::byte>(value & 0xff);
    ++size_;
  }
  /// Writes the low `count` bytes in the byte order of the buffer.
  void unsigned_of(std::uint64_t value, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) u8(value >> 8 * (big_endian_ ? count - 1 - i : i));
  }
  void u16(std::uint64_t value) noexcept { unsigned_of(value, 2); }
  void u32(std::uint64_t value) noexcept { unsigned_of(value, 4); }
  void u64(std::uint64_t value) noexcept { unsigned_of(value, 8); }

  /// Writes the shortest form of DWARF 5, 7.6.
  void uleb(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) u8(value | 0x80);
    u8(value);
  }
  void sleb(std::int64_t value) noexcept {
    for (; value < -0x40 || value >= 0x40; value >>= 7) u8(static_cast<std::uint64_t>(value) | 0x80);
    u8(static_cast<std::uint64_t>(value) & 0x7f);
  }

  /// Writes the bytes unchanged.
  void bytes(std::span<const std::byte> from) noexcept {
    for (const std::byte b : from) u8(std::to_integer<std::uint8_t>(b));
  }
  /// Fills up to the next multiple of `alignment`, counted from the first byte.
  void pad(std::size_t alignment, std::uint8_t fill) noexcept {
    while (size_ % alignment != 0) u8(fill);
  }
  /// Overwrites four bytes that were written before.
  void patch_u32(std::size_t at, std::uint64_t value) noexcept {
    const std::size_t end = size_;
    size_ = at;
    u32(value);
    size_ = end;
  }

 private:
  std::span<std::byte> into_;
  std::size_t size_ = 0;
  bool big_endian_;
};

}  // namespace jitunwind
#pragma GCC visibility pop

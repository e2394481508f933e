// Reads numbers from untrusted bytes. Every read is checked. The first failure is kept and turns later reads into
// zeros, so a parser may read a whole structure and check once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A reader of numbers. After the first failure every number is 0, and ok() is false.
class ByteReader {
 public:
  /// `address` is the address of the first byte, for errors and address().
  ByteReader(std::span<const std::byte> bytes, bool big_endian, Addr address = 0) noexcept
      : begin_(bytes.data()),
        next_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        address_(address),
        big_endian_(big_endian) {}

  bool ok() const noexcept { return !failed_; }
  /// True also after a failure, since nothing can be read then.
  bool at_end() const noexcept { return next_ == end_; }
  std::size_t position() const noexcept { return static_cast<std::size_t>(next_ - begin_); }
  std::size_t remaining() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  /// The address of the next byte.
  Addr address() const noexcept { return address_ + position(); }
  bool big_endian() const noexcept { return big_endian_; }

  /// Precondition: !ok(). Returns the code and the place of the first failure; `what` says what was being read.
  Error error(const char* what) const noexcept { return {code_, address_ + failed_at_, what}; }
  [[gnu::cold, gnu::noinline]] void fail(ErrorCode code) noexcept {
    if (failed_) return;
    failed_ = true;
    code_ = code;
    failed_at_ = position();
    end_ = next_;
  }

  /// `size` is 1, 2, 4 or 8.
  std::uint64_t unsigned_of(std::size_t size) noexcept {
    if (size > remaining()) return fail(ErrorCode::truncated), 0;
    const std::byte* const from = next_;
    next_ += size;
    switch (size) {
      case 1:
        return std::to_integer<std::uint8_t>(*from);
      case 2:
        return load<std::uint16_t>(from);
      case 4:
        return load<std::uint32_t>(from);
      default:
        return load<std::uint64_t>(from);
    }
  }
  std::uint8_t u8() noexcept { return static_cast<std::uint8_t>(unsigned_of(1)); }
  std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(unsigned_of(2)); }
  std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(unsigned_of(4)); }
  std::uint64_t u64() noexcept { return unsigned_of(8); }
  std::int64_t signed_of(std::size_t size) noexcept {
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
    return static_cast<std::int64_t>(unsigned_of(size) << unused) >> unused;
  }

  /// DWARF 5, 7.6. Padding with redundant bytes is allowed; values of more than 64 bits are bad_encoding.
  std::uint64_t uleb() noexcept {
    if (const std::int64_t byte = single_byte_leb(); byte >= 0) [[likely]]
      return static_cast<std::uint64_t>(byte);
    return long_uleb();
  }

  /// Padding of any length is allowed if the value fits (DWARF 5, 7.6).
  std::int64_t sleb() noexcept {
    if (const std::int64_t byte = single_byte_leb(); byte >= 0) [[likely]]
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(byte) << 57) >> 57;
    return long_sleb();
  }

  /// Takes the next bytes in place. The result is empty when there are fewer.
  std::span<const std::byte> bytes(std::uint64_t size) noexcept {
    const std::byte* from = take(size);
    return from ? std::span(from, static_cast<std::size_t>(size)) : std::span<const std::byte>{};
  }
  void skip(std::uint64_t size) noexcept { (void)take(size); }
  /// `position` may be the end.
  void seek(std::size_t position) noexcept {
    if (failed_) return;
    if (position > static_cast<std::size_t>(end_ - begin_)) return fail(ErrorCode::truncated);
    next_ = begin_ + position;
  }
  /// Takes the characters up to the next NUL, and skips the NUL.
  std::string_view c_string() noexcept {
    const char* const begin = reinterpret_cast<const char*>(next_);
    const void* const nul = at_end() ? nullptr : std::memchr(begin, 0, remaining());
    if (!nul) return fail(ErrorCode::truncated), std::string_view{};
    const auto length = static_cast<std::size_t>(static_cast<const char*>(nul) - begin);
    next_ += length + 1;
    return {begin, length};
  }
  /// Takes all bytes from here on.
  std::span<const std::byte> rest() noexcept { return bytes(remaining()); }

 private:
  /// Reads a number of one byte, which nearly all numbers are. Returns a negative value and reads nothing when the
  /// number is longer or cannot be read.
  std::int64_t single_byte_leb() noexcept {
    if (at_end()) return -1;
    const auto byte = std::to_integer<std::uint8_t>(*next_);
    if (byte >= 0x80) return -1;
    ++next_;
    return byte;
  }

  /// Numbers of more than one byte, in functions that are not repeated in all parsers.
  [[gnu::noinline]] std::uint64_t long_uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok()) return 0;
      const std::uint64_t group = byte & 0x7fu;
      const bool lost = shift > 63 ? group != 0 : shift == 63 && group > 1;
      if (lost) return fail(ErrorCode::bad_encoding), 0;
      if (shift <= 63) value |= group << shift;
      if ((byte & 0x80u) == 0) return value;
    }
  }
  [[gnu::noinline]] std::int64_t long_sleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok()) return 0;
      const std::uint64_t group = byte & 0x7fu;
      const std::uint64_t sign = value >> 63 ? 0x7fu : 0;  // padding must consist of this
      const bool lost = shift > 63 ? group != sign : shift == 63 && group != 0 && group != 0x7f;
      if (lost) return fail(ErrorCode::bad_encoding), 0;
      if (shift <= 63) value |= group << shift;
      if ((byte & 0x80u) != 0) continue;
      if (shift + 7 < 64 && (byte & 0x40u) != 0) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(value);
    }
  }

  const std::byte* take(std::uint64_t size) noexcept {
    if (size > remaining()) return fail(ErrorCode::truncated), nullptr;
    const std::byte* from = next_;
    next_ += size;
    return from;
  }

  template <class UInt>
  std::uint64_t load(const std::byte* from) const noexcept {
    UInt value;
    std::memcpy(&value, from, sizeof value);
    if (big_endian_ == (std::endian::native == std::endian::big)) return value;
    return __builtin_bswap64(value) >> (64 - 8 * sizeof value);
  }

  const std::byte* begin_;
  const std::byte* next_;
  const std::byte* end_;  // the end of the bytes, or the place where reading failed
  Addr address_;
  std::size_t failed_at_ = 0;
  ErrorCode code_ = ErrorCode::truncated;
  bool big_endian_;
  bool failed_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop

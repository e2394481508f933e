// Byte strings for tests: numbers of any size and byte order, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/emit/byte_writer.h"

namespace jitunwind::test {

using RawBytes = std::vector<std::byte>;

/// A byte string that is built in one expression: Bytes().u8(0x0c).uleb(7).uleb(8).
class Bytes {
 public:
  Bytes() = default;
  /// `word` is 4 or 8 bytes.
  static Bytes in_order(bool big_endian, std::size_t word = 8) {
    Bytes bytes;
    bytes.big_endian_ = big_endian;
    bytes.word_ = word;
    return bytes;
  }
  Bytes(std::initializer_list<unsigned> values) {
    for (const unsigned v : values) u8(v);
  }

  Bytes& u8(std::uint64_t v) { return number(v, 1); }
  Bytes& u16(std::uint64_t v) { return number(v, 2); }
  Bytes& u32(std::uint64_t v) { return number(v, 4); }
  Bytes& u64(std::uint64_t v) { return number(v, 8); }
  Bytes& word(std::uint64_t v) { return number(v, word_); }
  Bytes& uleb(std::uint64_t v) {
    return append(20, [&](ByteWriter& w) { w.uleb(v); });
  }
  Bytes& sleb(std::int64_t v) {
    return append(20, [&](ByteWriter& w) { w.sleb(v); });
  }
  Bytes& number(std::uint64_t v, std::size_t size) {
    return append(size, [&](ByteWriter& w) { w.unsigned_of(v, size); });
  }
  Bytes& characters(std::string_view s) {
    return append(s.size(), [&](ByteWriter& w) { w.bytes(std::as_bytes(std::span(s))); });
  }
  /// Appends the characters and the terminating NUL.
  Bytes& text(std::string_view s) { return characters(s).u8(0); }
  Bytes& add(const Bytes& other) {
    data_.insert(data_.end(), other.data_.begin(), other.data_.end());
    return *this;
  }
  /// Appends a block: its length and its contents.
  Bytes& block(const Bytes& contents) { return uleb(contents.size()).add(contents); }
  Bytes& fill(std::size_t count, unsigned value) {
    data_.insert(data_.end(), count, static_cast<std::byte>(value));
    return *this;
  }
  Bytes& align(std::size_t unit) { return fill((unit - data_.size() % unit) % unit, 0); }
  /// Overwrites bytes that were written before.
  Bytes& put(std::size_t at, std::uint64_t v, std::size_t size) {
    ByteWriter w{std::span<std::byte>(data_).subspan(at, size), big_endian_};
    w.unsigned_of(v, size);
    return *this;
  }

  std::size_t size() const { return data_.size(); }
  const RawBytes& vector() const { return data_; }
  RawBytes& vector() { return data_; }
  std::string string() const { return {reinterpret_cast<const char*>(data_.data()), data_.size()}; }

 private:
  template <class Write>
  Bytes& append(std::size_t room, Write write) {
    const std::size_t at = data_.size();
    data_.resize(at + room);
    ByteWriter writer{std::span<std::byte>(data_).subspan(at), big_endian_};
    write(writer);
    data_.resize(at + writer.size());
    return *this;
  }

  RawBytes data_;
  bool big_endian_ = false;
  std::size_t word_ = 8;
};

}  // namespace jitunwind::test

// Writes CIEs, FDEs and their instructions for tests, correct ones and others. Every length and number is what the test
// says or, where it says nothing, what is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind::test {

/// Bytes of any kind, appended in one expression: Bytes().u8(0x0c).uleb(7).uleb(8).
class Bytes {
 public:
  Bytes() = default;
  static Bytes in_order(bool big_endian) {
    Bytes bytes;
    bytes.big_endian_ = big_endian;
    return bytes;
  }
  Bytes(std::initializer_list<unsigned> values) {
    for (const unsigned v : values) u8(v);
  }

  Bytes& u8(std::uint64_t v) { return number(v, 1); }
  Bytes& u16(std::uint64_t v) { return number(v, 2); }
  Bytes& u32(std::uint64_t v) { return number(v, 4); }
  Bytes& u64(std::uint64_t v) { return number(v, 8); }
  Bytes& uleb(std::uint64_t v) {
    return append(20, [&](ByteWriter& w) { w.uleb(v); });
  }
  Bytes& sleb(std::int64_t v) {
    return append(20, [&](ByteWriter& w) { w.sleb(v); });
  }
  Bytes& number(std::uint64_t v, std::size_t size) {
    return append(size, [&](ByteWriter& w) { w.unsigned_of(v, size); });
  }
  Bytes& text(std::string_view s) {
    for (const char c : s) u8(static_cast<unsigned char>(c));
    return u8(0);
  }
  Bytes& add(const Bytes& other) {
    data_.insert(data_.end(), other.data_.begin(), other.data_.end());
    return *this;
  }
  /// A block: length and contents.
  Bytes& block(const Bytes& contents) { return uleb(contents.size()).add(contents); }
  Bytes& fill(std::size_t count, unsigned value) {
    data_.insert(data_.end(), count, static_cast<std::byte>(value));
    return *this;
  }
  /// Overwrites what was written before.
  Bytes& put(std::size_t at, std::uint64_t v, std::size_t size) {
    ByteWriter w{std::span<std::byte>(data_).subspan(at, size), big_endian_};
    w.unsigned_of(v, size);
    return *this;
  }

  std::size_t size() const { return data_.size(); }
  const std::vector<std::byte>& vector() const { return data_; }
  std::vector<std::byte>& vector() { return data_; }

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

  std::vector<std::byte> data_;
  bool big_endian_ = false;
};

struct CieSpec {
  unsigned version = 1;
  std::string augmentation{};
  Bytes augmentation_data{};  ///< behind "z", without its length
  Bytes eh_data{};            ///< behind the augmentation string, of "eh"
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = -8;
  std::uint64_t return_address = 16;
  unsigned address_size = 8;  ///< of version 4
  unsigned segment_size = 0;
  Bytes instructions{0x0c, 7, 8, 0x90, 1};  ///< cfa=rsp+8 ra=[cfa-8]
};

/// A section of one format, in the length form given.
class CfiSection {
 public:
  using Format = CfiContext::Format;

  explicit CfiSection(Addr address = 0x10000, Format format = Format::eh_frame, bool wide = false,
                      bool big_endian = false)
      : data_(Bytes::in_order(big_endian)), address_(address), format_(format), wide_(wide), big_endian_(big_endian) {}

  /// Where the next byte will be.
  Addr here() const { return address_ + data_.size(); }
  Bytes bytes() const { return Bytes::in_order(big_endian_); }

  /// Address of the CIE.
  Addr cie(const CieSpec& spec) {
    Bytes body = bytes();
    body.u8(spec.version).text(spec.augmentation);
    if (spec.version == 4) body.u8(spec.address_size).u8(spec.segment_size);
    body.add(spec.eh_data).uleb(spec.code_alignment).sleb(spec.data_alignment);
    if (spec.version == 1)
      body.u8(spec.return_address);
    else
      body.uleb(spec.return_address);
    if (spec.augmentation.starts_with('z')) body.uleb(spec.augmentation_data.size()).add(spec.augmentation_data);
    body.add(spec.instructions);
    return entry(format_ == Format::eh_frame ? 0 : ~std::uint64_t{0}, body);
  }

  /// Address of the FDE. `body` is all behind the CIE pointer.
  Addr fde(Addr cie, const Bytes& body) {
    const Addr id_at = here() + (wide_ ? 12 : 4);
    return entry(format_ == Format::eh_frame ? id_at - cie : cie - address_, body);
  }
  /// With absolute pointers of 8 bytes and no augmentation data.
  Addr fde(Addr cie, Addr begin, std::uint64_t size, const Bytes& instructions) {
    return fde(cie, bytes().u64(begin).u64(size).add(instructions));
  }

  Addr terminator() {
    const Addr at = here();
    data_.u32(0);
    return at;
  }
  Bytes& data() { return data_; }
  SectionBytes section() const { return {data_.vector(), address_}; }

 private:
  std::size_t id_size() const { return wide_ && format_ == Format::debug_frame ? 8 : 4; }

  Addr entry(std::uint64_t id, const Bytes& body) {
    const Addr at = here();
    if (wide_)
      data_.u32(0xffffffffu).u64(id_size() + body.size());
    else
      data_.u32(id_size() + body.size());
    data_.number(id, id_size()).add(body);
    return at;
  }

  Bytes data_;
  Addr address_;
  Format format_;
  bool wide_;
  bool big_endian_;
};

}  // namespace jitunwind::test

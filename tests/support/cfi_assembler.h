// Writes CIEs, FDEs and their instructions for tests, correct ones and wrong ones. Every length and number is the one
// that the test gives or else the correct one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {

struct CieSpec {
  unsigned version = 1;
  std::string augmentation{};
  Bytes augmentation_data{};  ///< behind "z", without its length
  Bytes eh_data{};            ///< behind the augmentation string, of "eh"
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = -8;
  std::uint64_t return_address = 16;
  unsigned address_size = 8;  ///< in version 4
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

  /// The address of the next byte.
  Addr here() const { return address_ + data_.size(); }
  Bytes bytes() const { return Bytes::in_order(big_endian_); }

  /// Appends a CIE and returns its address.
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

  /// Appends an FDE and returns its address. `body` is everything behind the CIE pointer.
  Addr fde(Addr cie, const Bytes& body) {
    const Addr id_at = here() + (wide_ ? 12 : 4);
    return entry(format_ == Format::eh_frame ? id_at - cie : cie - address_, body);
  }
  /// Appends an FDE with absolute pointers of 8 bytes and no augmentation data.
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

/// An object at `begin` with what write(CfiSection&) adds to its .eh_frame. A segment for .eh_frame_hdr is added.
template <class Write>
RawBytes object_with_frames(ElfBuilder elf, Addr begin, Write write) {
  elf.segments.push_back({.type = PT_GNU_EH_FRAME, .memory_size = 8});
  elf.sections = {{".eh_frame_hdr", SHT_PROGBITS, RawBytes(8)}, {".eh_frame"}};
  BuiltSegment& header = elf.segments.back();
  header.offset = header.address = elf.offset_of(0);
  CfiSection frames(begin + elf.offset_of(1), CfiContext::Format::eh_frame, false, elf.big_endian);
  write(frames);
  frames.terminator();
  // The header has version 1, .eh_frame at 4 bytes relative to their place, and no table.
  const Addr to_frames = elf.offset_of(1) - (elf.offset_of(0) + 4);
  elf.sections[0].data = elf.bytes().u8(1).u8(0x1b).u8(0xff).u8(0xff).u32(to_frames).vector();
  elf.sections[1].data = frames.data().vector();
  return elf.build();
}

}  // namespace jitunwind::test

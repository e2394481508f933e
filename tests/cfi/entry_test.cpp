// CIEs and FDEs in every version, length form, augmentation and pointer encoding, and corrupt ones.
#include <gtest/gtest.h>

#include "tests/cfi/rows_of.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

using Format = CfiContext::Format;

const CfiContext k_eh{.arch = arch::x86_64};

Result<Fde> read(const CfiSection& section, Addr at, const CfiContext& context = k_eh) {
  // The bytes are copied to the heap, where AddressSanitizer notices a read behind the end.
  static std::vector<std::byte> bytes;
  const SectionBytes original = section.section();
  bytes.assign(original.bytes.begin(), original.bytes.end());
  bytes.shrink_to_fit();
  SectionView view({bytes, original.address});
  return read_fde(view, context, at);
}

/// Returns "begin..end" of an FDE, or the error's line.
std::string range_of(const Result<Fde>& fde) {
  if (!fde) return error_line(fde.error());
  char text[64];
  std::snprintf(text, sizeof text, "%llx..%llx", static_cast<unsigned long long>(fde->range.begin),
                static_cast<unsigned long long>(fde->range.end));
  return text;
}

TEST(CfiEntry, VersionsFormatsAndLengthForms) {
  for (const Format format : {Format::eh_frame, Format::debug_frame})
    for (const bool wide : {false, true})
      for (const bool big_endian : {false, true})
        for (const unsigned version : {1u, 3u, 4u}) {
          Arch arch = arch::x86_64;
          arch.big_endian = big_endian;
          CfiContext context{.arch = arch, .format = format, .section = 0x10000};
          CfiSection section(0x10000, format, wide, big_endian);
          const Addr cie = section.cie({.version = version});
          const Addr at = section.fde(cie, 0x1234, 16, {0x41, 0x0e, 16});
          const auto fde = read(section, at, context);
          ASSERT_TRUE(fde) << fde.error().what;
          EXPECT_EQ(range_of(fde), "1234..1244");
          EXPECT_EQ(fde->cie.version, version);
          EXPECT_EQ(fde->cie.address, cie);
          EXPECT_EQ(fde->address, at);
          EXPECT_EQ(fde->address + fde->size, section.here());
          EXPECT_EQ(rows_of(*fde, context), "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]");
        }
}

TEST(CfiEntry, ReturnAddressColumn) {
  CfiSection section;
  const Addr narrow = section.cie({.version = 1, .return_address = 200});
  const Addr wide = section.cie({.version = 3, .return_address = 300});
  const Addr too_wide = section.cie({.version = 3, .return_address = 0xffff});
  EXPECT_EQ(read(section, section.fde(narrow, 1, 1, {}))->cie.return_address, 200);
  EXPECT_EQ(read(section, section.fde(wide, 1, 1, {}))->cie.return_address, 300);
  EXPECT_EQ(range_of(read(section, section.fde(too_wide, 1, 1, {}))), "error bad_register: return address column");
}

// covers: PI05
TEST(CfiEntry, VersionsThatAreNotKnown) {
  for (const unsigned version : {0u, 2u, 5u, 9u}) {
    CfiSection section;
    const Addr cie = section.cie({.version = version});
    EXPECT_EQ(range_of(read(section, section.fde(cie, 0x1000, 1, {}))), "error unsupported_version: version of a CIE");
  }
}

TEST(CfiEntry, SizesOfVersionFour) {
  CfiSection section;
  const Addr narrow = section.cie({.version = 4, .address_size = 4});
  const Addr segmented = section.cie({.version = 4, .segment_size = 2});
  const char* const error = "error bad_structure: address or segment selector size of a CIE";
  EXPECT_EQ(range_of(read(section, section.fde(narrow, 0x1000, 1, {}))), error);
  EXPECT_EQ(range_of(read(section, section.fde(segmented, 0x1000, 1, {}))), error);
}

TEST(CfiEntry, Augmentations) {
  CfiSection section;
  const Bytes fde_without_data = section.bytes().u64(0x1000).u64(16);
  const Bytes fde_with_data = section.bytes().u64(0x1000).u64(16).block({});
  const auto read_with = [&](const CieSpec& spec, const Bytes& body) {
    return read(section, section.fde(section.cie(spec), body));
  };
  EXPECT_EQ(range_of(read_with({.augmentation = "z"}, fde_with_data)), "1000..1010");
  EXPECT_TRUE(read_with({.augmentation = "zS"}, fde_with_data)->cie.signal_frame);
  EXPECT_FALSE(read_with({.augmentation = "z"}, fde_with_data)->cie.signal_frame);
  EXPECT_TRUE(read_with({.augmentation = "zB"}, fde_with_data)->cie.signed_with_b_key);
  EXPECT_EQ(
      range_of(read_with({.augmentation = "zR", .augmentation_data = {0x03}}, Bytes().u32(0x1000).u32(16).block({}))),
      "1000..1010");
  // The CIE and the FDE have augmentation data that no reader knows.
  EXPECT_EQ(range_of(read_with({.augmentation = "zX", .augmentation_data = {1, 2, 3}},
                               section.bytes().u64(0x1000).u64(16).block({4, 5}))),
            "1000..1010");
  EXPECT_EQ(range_of(read_with({.augmentation = "zRXS", .augmentation_data = {0x03, 1, 2}},
                               Bytes().u32(0x1000).u32(16).block({}))),
            "1000..1010");
  for (const char* const hidden : {"zXR", "zXL", "zXP"})
    EXPECT_EQ(range_of(read_with({.augmentation = hidden, .augmentation_data = {1, 2, 3}}, fde_with_data)),
              "error bad_augmentation: CIE");
  // gcc 2 writes the address of exception data behind the string.
  EXPECT_EQ(range_of(read_with({.augmentation = "eh", .eh_data = section.bytes().u64(0xdddd)}, fde_without_data)),
            "1000..1010");
  for (const char* const unknown : {"R", "S", "armcc+", "x"})
    EXPECT_EQ(range_of(read_with({.augmentation = unknown}, fde_without_data)),
              "error bad_augmentation: augmentation of a CIE");
  // The letters need more data than there is.
  for (const char* const longer : {"zR", "zL", "zP", "zRL"})
    EXPECT_EQ(range_of(read_with({.augmentation = longer}, fde_with_data)), "error truncated: CIE");
}

struct EncodingCase {
  const char* what;
  unsigned encoding;
  Bytes bytes;  // at 0x20000
  Addr value;
  bool indirect = false;
};

TEST(CfiEntry, PointerEncodings) {
  const EncodingCase cases[] = {
      {"omit", 0xff, {}, 0},
      {"absptr", 0x00, Bytes().u64(0xfedcba9876543210), 0xfedcba9876543210},
      {"uleb128", 0x01, {0x80, 0x20}, 0x1000},
      {"udata2", 0x02, {0xfe, 0xff}, 0xfffe},
      {"udata4", 0x03, {0xfd, 0xff, 0xff, 0xff}, 0xfffffffd},
      {"udata8", 0x04, Bytes().u64(0x123456789abcdef0), 0x123456789abcdef0},
      {"signed", 0x08, Bytes().u64(0x123456789abcdef0), 0x123456789abcdef0},
      {"sleb128", 0x09, {0x7f}, ~Addr{0}},
      {"sdata2", 0x0a, {0xfe, 0xff}, ~Addr{1}},
      {"sdata4", 0x0b, {0xfd, 0xff, 0xff, 0xff}, ~Addr{2}},
      {"sdata8", 0x0c, Bytes().u64(~Addr{3}), ~Addr{3}},
      {"pcrel sdata4", 0x1b, {0xf0, 0xff, 0xff, 0xff}, 0x1fff0},
      {"pcrel absptr wraps", 0x10, Bytes().u64(~Addr{0}), 0x1ffff},
      {"pcrel uleb128", 0x11, {0x80, 1}, 0x20080},
      {"textrel udata2", 0x22, {0x34, 0x12}, 0x301234},
      {"datarel sdata2", 0x3a, {0xfe, 0xff}, 0x3ffffe},
      {"funcrel udata4", 0x43, {4, 0, 0, 0}, 0x500004},
      {"aligned, in place", 0x50, Bytes().u64(0x1122), 0x1122},
      {"indirect absptr", 0x80, Bytes().u64(0x60000), 0x60000, true},
      {"indirect pcrel sdata4", 0x9b, {8, 0, 0, 0}, 0x20008, true},
      {"0 stays 0", 0x1b, {0, 0, 0, 0}, 0},
      {"0 stays 0, indirect or not", 0x9b, {0, 0, 0, 0}, 0},
  };
  const CfiContext context{.arch = arch::x86_64, .text_base = 0x300000, .data_base = 0x400000};
  for (const EncodingCase& c : cases) {
    ByteReader reader(c.bytes.vector(), false, 0x20000);
    const EncodedPointer pointer = read_encoded(reader, static_cast<std::uint8_t>(c.encoding), context, 0x500000);
    EXPECT_TRUE(reader.ok()) << c.what;
    EXPECT_TRUE(reader.at_end()) << c.what;
    EXPECT_EQ(pointer.value, c.value) << c.what;
    EXPECT_EQ(pointer.indirect, c.indirect) << c.what;
  }
  for (std::size_t skip = 1; skip < 8; ++skip) {
    const Bytes bytes = Bytes().fill(skip, 0xee).fill(8 - skip, 0xcc).u64(0x1122);
    ByteReader reader(bytes.vector(), false, 0x20000);
    reader.skip(skip);
    EXPECT_EQ(read_encoded(reader, 0x50, context, 0).value, 0x1122u) << skip;
  }
}

TEST(CfiEntry, PointerEncodingsRefused) {
  const CfiContext nothing_known{.arch = arch::x86_64};
  const CfiContext debug{.arch = arch::x86_64, .format = Format::debug_frame};
  const struct {
    unsigned encoding;
    const CfiContext& context;
    ErrorCode code;
  } cases[] = {
      {0x05, nothing_known, ErrorCode::bad_encoding}, {0x0d, nothing_known, ErrorCode::bad_encoding},
      {0x0f, nothing_known, ErrorCode::bad_encoding}, {0x51, nothing_known, ErrorCode::bad_encoding},
      {0x60, nothing_known, ErrorCode::bad_encoding}, {0x70, nothing_known, ErrorCode::bad_encoding},
      {0xd0, nothing_known, ErrorCode::bad_encoding}, {0x2b, nothing_known, ErrorCode::bad_encoding},
      {0x3b, nothing_known, ErrorCode::bad_encoding}, {0x4b, nothing_known, ErrorCode::bad_encoding},
      {0x1b, debug, ErrorCode::bad_encoding},
  };
  const Bytes eight = Bytes().u64(0x0101010101010101);
  for (const auto& c : cases) {
    ByteReader reader(eight.vector(), false, 0x20000);
    read_encoded(reader, static_cast<std::uint8_t>(c.encoding), c.context, 0);
    ASSERT_FALSE(reader.ok()) << c.encoding;
    EXPECT_EQ(reader.error("").code, c.code);
  }
  for (unsigned encoding = 0; encoding < 0xff; ++encoding) {
    ByteReader reader({}, false, 0x20000);
    read_encoded(reader, static_cast<std::uint8_t>(encoding), nothing_known, 0);
    EXPECT_FALSE(reader.ok()) << encoding << " of no bytes";
  }
}

// The length has the format of the address, no base and no sign (LSB 5.0 core, 10.6.1.2).
TEST(CfiEntry, RangesOfFdes) {
  const struct {
    unsigned encoding;
    Bytes address_and_length;  // at 0x10000 + 8 behind the CIE's end
    Addr size;
  } cases[] = {
      {0x00, Bytes().u64(0x1000).u64(0x20), 0x20},
      {0x01, Bytes().uleb(0x1000).uleb(0x200), 0x200},
      {0x02, Bytes().u16(0x1000).u16(0xfff0), 0xfff0},
      {0x0a, Bytes().u16(0x1000).u16(0xfff0), 0xfff0},
      {0x0b, Bytes().u32(0x1000).u32(0xfffffff0), 0xfffffff0},
      {0x09, Bytes().sleb(0x1000).sleb(0x60), 0x60},
      {0x0c, Bytes().u64(0x1000).u64(0x20), 0x20},
      {0x50, Bytes().u64(0x1000).u64(0x20), 0x20},
  };
  for (const auto& c : cases) {
    CfiSection section(0x10000);
    CieSpec spec{.augmentation = "zR", .augmentation_data = {c.encoding}};
    // The FDE's address field is on a multiple of 8, for "aligned".
    while ((spec.instructions.size() + 17) % 8 != 0) spec.instructions.u8(0);
    const Addr cie = section.cie(spec);
    const auto fde = read(section, section.fde(cie, Bytes(c.address_and_length).block({})));
    ASSERT_TRUE(fde) << c.encoding << fde.error().what;
    EXPECT_EQ(fde->range, (AddrRange{0x1000, 0x1000 + c.size})) << c.encoding;
  }
}

TEST(CfiEntry, RangesRefused) {
  CfiSection section;
  const auto with = [&](unsigned encoding, const Bytes& body) {
    const Addr cie = section.cie({.augmentation = "zR", .augmentation_data = {encoding}});
    return range_of(read(section, section.fde(cie, body)));
  };
  EXPECT_EQ(with(0x00, Bytes().u64(0x1000).u64(~Addr{0}).block({})),
            "error bad_structure: FDE reaches behind the end of the address space");
  Arch narrow = arch::x86_64;
  narrow.word_size = 4;
  const Addr cie = section.cie({.augmentation = "zR", .augmentation_data = {0x04}});
  const Addr beyond = section.fde(cie, Bytes().u64(0xfffffff0).u64(0x11).block({}));
  const Addr within = section.fde(cie, Bytes().u64(0xfffffff0).u64(0x10).block({}));
  EXPECT_EQ(range_of(read(section, beyond, {.arch = narrow})),
            "error bad_structure: FDE reaches behind the end of the address space");
  EXPECT_EQ(range_of(read(section, within, {.arch = narrow})), "fffffff0..100000000");
  EXPECT_EQ(with(0x09, Bytes().sleb(0x1000).sleb(-1).block({})), "error bad_structure: FDE");
  EXPECT_EQ(with(0x80, Bytes().u64(0x1000).u64(1).block({})),
            "error bad_encoding: address of an FDE's code is indirect");
  EXPECT_EQ(with(0xff, Bytes().block({})), "error bad_encoding: FDE without address of its code");
  EXPECT_EQ(with(0x00, Bytes().u64(0x1000).u64(1).uleb(1)), "error truncated: FDE");
  EXPECT_EQ(with(0x00, Bytes().u64(0x1000).u32(1)), "error truncated: FDE");
}

TEST(CfiEntry, PersonalityAndLsda) {
  FakeMemory memory;
  memory.put(0x30000, 0xaabbcc);
  memory.put(0x30010, 0xddeeff);
  MemoryWindow window;
  const auto describe_one = [&](const CieSpec& spec, const Bytes& body, ProcedureInfo& info) -> Status {
    CfiSection section(0x10000);
    const Addr cie = section.cie(spec);
    const auto fde = read(section, section.fde(cie, body));
    if (!fde) return fde.error();
    EXPECT_EQ(fde->range, (AddrRange{0x1000, 0x1010}));
    return read_procedure(*fde, arch::x86_64, memory, window, info);
  };
  const Bytes code = Bytes().u64(0x1000).u64(16);
  ProcedureInfo info;
  ASSERT_TRUE(describe_one({.augmentation = "zPL", .augmentation_data = Bytes{0x00}.u64(0xabc).u8(0x00)},
                           Bytes(code).block(Bytes().u64(0xdef)), info));
  EXPECT_EQ(info.handler, 0xabcu);
  EXPECT_EQ(info.lsda, 0xdefu);
  EXPECT_EQ(info.range, (AddrRange{0x1000, 0x1010}));
  EXPECT_EQ(info.format, 1);
  EXPECT_EQ(info.unwind_info_size, 4 + 4 + 16 + 9u);

  ASSERT_TRUE(describe_one({.augmentation = "zPL", .augmentation_data = Bytes{0x80}.u64(0x30000).u8(0x80)},
                           Bytes(code).block(Bytes().u64(0x30010)), info));
  EXPECT_EQ(info.handler, 0xaabbccu);
  EXPECT_EQ(info.lsda, 0xddeeffu);

  ASSERT_TRUE(
      describe_one({.augmentation = "zL", .augmentation_data = {0x43}}, Bytes(code).block(Bytes().u32(0x20)), info));
  EXPECT_EQ(info.handler, 0u);
  EXPECT_EQ(info.lsda, 0x1020u) << "relative to the function";

  ASSERT_TRUE(
      describe_one({.augmentation = "zL", .augmentation_data = {0x1b}}, Bytes(code).block(Bytes().u32(0)), info));
  EXPECT_EQ(info.lsda, 0u) << "0 means none";

  const Status unreadable =
      describe_one({.augmentation = "zP", .augmentation_data = Bytes{0x80}.u64(0x40000)}, Bytes(code).block({}), info);
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code, ErrorCode::unreadable_memory);
  EXPECT_EQ(unreadable.error().at, 0x40000u);
}

TEST(CfiEntry, Liars) {
  const auto lie = [](const auto& change) {
    CfiSection section(0x10000);
    const Addr cie = section.cie({});
    const Addr fde = section.fde(cie, 0x1000, 16, {0x41, 0x0e, 16});
    section.terminator();
    const Addr at = change(section.data(), cie - 0x10000, fde - 0x10000);
    return range_of(read(section, at == 0 ? fde : at));
  };
  const char* const too_long = "error truncated: CIE or FDE is longer than what can be read";
  EXPECT_EQ(lie([](Bytes&, Addr, Addr) { return Addr{0}; }), "1000..1010");
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde, 0x7fffffff, 4), Addr{0}; }), too_long);
  EXPECT_EQ(lie([](Bytes& b, Addr cie, Addr) { return b.put(cie, 0x7fffffff, 4), Addr{0}; }), too_long);
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde, 0xfffffff0, 4), Addr{0}; }),
            "error bad_structure: reserved length of a CIE or FDE");
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde, ~0u, 4).put(fde + 4, ~Addr{0}, 8), Addr{0}; }),
            "error truncated: CIE or FDE");
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde, 3, 4), Addr{0}; }),
            "error truncated: id of a CIE or FDE");
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde + 4, 4, 4), Addr{0}; }),
            "error bad_structure: what an FDE names as its CIE is none")
      << "itself";
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr fde) { return b.put(fde + 4, 0x20000, 4), Addr{0}; }),
            "error truncated: outside of the section")
      << "before the section";
  EXPECT_EQ(lie([](Bytes&, Addr cie, Addr) { return cie + 0x10000; }), "error bad_structure: no FDE at this address");
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr) { return 0x10000 + b.size() - 4; }),
            "error bad_structure: no FDE at this address")
      << "the terminator";
  EXPECT_EQ(lie([](Bytes& b, Addr, Addr) { return 0x10000 + b.size(); }), "error truncated: outside of the section");
  EXPECT_EQ(lie([](Bytes&, Addr, Addr) { return Addr{0xfff0}; }), "error truncated: outside of the section");
  EXPECT_EQ(lie([](Bytes& b, Addr cie, Addr) { return b.put(cie + 9, 'x', 1), Addr{0}; }), "error truncated: CIE")
      << "an augmentation string that ends somewhere else";
}

TEST(CfiEntry, EveryPrefixAndEveryByteChanged) {
  CfiSection section(0x10000);
  const Addr cie = section.cie({.augmentation = "zPLR", .augmentation_data = Bytes{0x9b}.u32(8).u8(0x1b).u8(0x1b)});
  const Addr at =
      section.fde(cie, Bytes().u32(0x100).u32(0x40).block(Bytes().u32(4)).add({0x41, 0x0e, 16, 0x0f, 1, 0x50}));
  const std::size_t size = section.data().size();
  const std::vector<std::byte> good = section.data().vector();
  for (std::size_t length = 0; length < size; ++length) {
    section.data().vector().resize(length);
    EXPECT_FALSE(read(section, at)) << length;
    section.data().vector() = good;
  }
  for (std::size_t i = 0; i < size; ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      section.data().vector()[i] ^= static_cast<std::byte>(1u << bit);
      const auto fde = read(section, at);  // and if it still is one, its rows end
      EXPECT_TRUE(!fde || fde->range.empty() || !rows_of(*fde, k_eh).empty());
      section.data().vector() = good;
    }
}

TEST(CfiEntry, ScanFindsFdesUpToTheTerminator) {
  for (const Format format : {Format::eh_frame, Format::debug_frame}) {
    const CfiContext context{.arch = arch::x86_64, .format = format, .section = 0x10000};
    CfiSection section(0x10000, format);
    const Addr one = section.cie({});
    const Addr two = section.cie({.version = 3});
    const Addr bad = section.cie({.version = 7});
    std::vector<Addr> expected{section.fde(one, 1, 1, {}), section.fde(two, 2, 1, {})};
    section.fde(bad, 3, 1, {});
    expected.push_back(section.fde(one, 4, 1, {}));
    section.terminator();
    const Addr behind = section.fde(one, 5, 1, {});
    if (format == Format::debug_frame) expected.push_back(behind);  // only .eh_frame has terminators

    SectionView view(section.section());
    FdeScan scan(view, context, {0x10000, section.here()});
    std::vector<Addr> found;
    int errors = 0;
    while (!scan.at_end()) {
      Fde fde;
      const auto more = scan.next(fde);
      errors += !more;
      if (more && *more) found.push_back(fde.address);
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(errors, 1);
    Fde fde;
    const auto more = scan.next(fde);
    EXPECT_TRUE(more && !*more);
  }
}

TEST(CfiEntry, ScanEndsAtAnEntryWithoutLength) {
  CfiSection section(0x10000);
  section.fde(section.cie({}), 1, 1, {});
  section.data().u32(0xffff);
  SectionView view(section.section());
  FdeScan scan(view, k_eh, {0x10000, section.here()});
  Fde fde;
  EXPECT_TRUE(scan.next(fde).value());
  EXPECT_FALSE(scan.next(fde));
  EXPECT_TRUE(scan.at_end());
}

TEST(CfiEntry, OutOfMemoryOfTheTarget) {
  CfiSection section(0x10000);
  const Addr cie = section.cie({.instructions = Bytes{0x0c, 7, 8, 0x90, 1}.fill(100, 0)});
  const Addr at = section.fde(cie, 0x1000, 16, {0x0f, 2, 0x77, 8});
  FakeMemory memory;
  memory.put_bytes(0x10000, section.data().vector());
  MemoryWindow window;
  std::array<std::byte, 512> buffer;
  MemoryView view(memory, window, buffer);
  const auto fde = read_fde(view, k_eh, at);
  ASSERT_TRUE(fde) << fde.error().what;
  memory.put_bytes(0x10000, Bytes().fill(section.data().size(), 0xff).vector());  // the rows live from the copy
  EXPECT_EQ(rows_of(*fde, k_eh), "+0: cfa=expr(7708) ra=[cfa-8]");

  memory.put_bytes(0x10000, section.data().vector());
  MemoryView small(memory, window, std::span(buffer).first(100));
  EXPECT_EQ(range_of(read_fde(small, k_eh, at)), "error too_deep: CIE or FDE is longer than what can be read");
  MemoryView none(memory, window, buffer);
  EXPECT_EQ(range_of(read_fde(none, k_eh, 0x20000)), "error unreadable_memory: call frame information");
  EXPECT_EQ(range_of(read_fde(none, k_eh, ~Addr{0} - 1)), "error unreadable_memory: call frame information");
}

}  // namespace
}  // namespace jitunwind::test

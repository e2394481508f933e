// Compressed sections and xz streams: right ones made by their tools, and corrupt ones.
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#ifdef HAS_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "tests/support/command.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {
namespace {

RawBytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RawBytes deflated(const std::string& text, int level = 9) {
  uLongf size = ::compressBound(text.size());
  RawBytes out(size);
  EXPECT_EQ(::compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                        text.size(), level),
            Z_OK);
  out.resize(size);
  return out;
}

#ifdef HAS_ZSTD
RawBytes zstd(const std::string& text) {
  RawBytes out(::ZSTD_compressBound(text.size()));
  const std::size_t size = ::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 9);
  EXPECT_FALSE(::ZSTD_isError(size));
  out.resize(size);
  return out;
}
#endif

RawBytes xz(const std::string& text, std::uint32_t preset = 6) {
  RawBytes out(::lzma_stream_buffer_bound(text.size()));
  std::size_t size = 0;
  EXPECT_EQ(
      ::lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                                text.size(), reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  return out;
}

std::string random_text(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % (1 + random() % 26));
  return text;
}

constexpr std::uint32_t k_of_zstd = 2;  // ELFCOMPRESS_ZSTD

struct Section {
  std::string name = ".debug_frame";
  std::uint64_t flags = SHF_COMPRESSED;
  std::uint32_t type = ELFCOMPRESS_ZLIB;
  std::uint64_t size = 0;
  RawBytes stream;
};

RawBytes contents_of(const Section& s, const ElfBuilder& b) {
  Bytes data = b.bytes();
  if (s.name.starts_with(".z")) {
    data.characters("ZLIB").add(Bytes::in_order(true).u64(s.size));
  } else if (s.flags & SHF_COMPRESSED) {
    data.u32(s.type);
    if (b.is_64) data.u32(0);
    data.word(s.size).word(8);
  }
  RawBytes all = data.vector();
  all.insert(all.end(), s.stream.begin(), s.stream.end());
  return all;
}

RawBytes image_with(const Section& s, bool is_64, bool big_endian) {
  ElfBuilder b(is_64, big_endian);
  b.sections = {{s.name, SHT_PROGBITS, contents_of(s, b), 0, s.flags}};
  return b.build();
}

Result<std::string> read(const Section& s, bool is_64 = true, bool big_endian = false) {
  const RawBytes file = image_with(s, is_64, big_endian);
  const auto image = ElfImage::parse(file);
  EXPECT_TRUE(image);
  const auto data = read_section(*image, *image->find_section(s.name));
  if (!data) return data.error();
  return text_of(data->bytes);
}

TEST(CompressedSections, AreReadInEveryClassAndByteOrder) {
  for (const std::size_t size : {1ul, 100ul, 70000ul, 300000ul}) {
    const std::string text = random_text(size, 5);
    for (const bool is_64 : {true, false})
      for (const bool big_endian : {true, false}) {
        EXPECT_EQ(*read({".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, size, deflated(text)}, is_64, big_endian),
                  text);
        EXPECT_EQ(*read({".zdebug_frame", 0, 0, size, deflated(text)}, is_64, big_endian), text);
#ifdef HAS_ZSTD
        EXPECT_EQ(*read({".debug_frame", SHF_COMPRESSED, k_of_zstd, size, zstd(text)}, is_64, big_endian), text);
#endif
      }
    EXPECT_EQ(*read({".debug_frame", 0, 0, 0, bytes_of(text)}), text);
  }
  // Zeros compress best: this is the size that zlib's factor allows.
  const std::string zeros(1 << 20, '\0');
  EXPECT_EQ(*read({".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, zeros.size(), deflated(zeros)}), zeros);
}

TEST(CompressedSections, ThatLieAreRefused) {
  const std::string text = random_text(1000, 6);
  const RawBytes stream = deflated(text);
  const auto code = [](const Section& s) {
    const auto result = read(s);
    return result ? ErrorCode::unspecified : result.error().code;
  };
  const std::uint32_t zlib = ELFCOMPRESS_ZLIB;
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, 999, stream}), ErrorCode::bad_encoding);
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, 1001, stream}), ErrorCode::bad_encoding);
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, 0, stream}), ErrorCode::bad_encoding);
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, k_of_zstd, 1000, stream}), ErrorCode::bad_encoding);
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, 3, 1000, stream}), ErrorCode::bad_encoding);
  EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, 1000, bytes_of("no zlib stream")}), ErrorCode::bad_encoding);
  for (const std::uint64_t size : {std::uint64_t{1} << 21, (std::uint64_t{1} << 30) + 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, size, stream}), ErrorCode::too_deep);
    EXPECT_EQ(code({".zdebug_frame", 0, 0, size, stream}), ErrorCode::too_deep);
  }
  for (std::size_t cut = 0; cut < stream.size(); ++cut)
    EXPECT_EQ(code({".debug_frame", SHF_COMPRESSED, zlib, 1000,
                    RawBytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(cut))}),
              ErrorCode::bad_encoding);
}

#ifdef HAS_ZSTD
TEST(CompressedSections, OfZstdMayHaveSeveralFrames) {
  const std::string text = random_text(5000, 9);
  RawBytes stream = zstd(text.substr(0, 3000));
  const std::size_t first = stream.size();
  const RawBytes second = zstd(text.substr(3000));
  stream.insert(stream.end(), second.begin(), second.end());
  EXPECT_EQ(*read({".debug_frame", SHF_COMPRESSED, k_of_zstd, text.size(), stream}), text);
  const std::string zeros(1 << 22, '\0');
  EXPECT_EQ(*read({".debug_frame", SHF_COMPRESSED, k_of_zstd, zeros.size(), zstd(zeros)}), zeros);

  const auto error = [](std::uint64_t size, const RawBytes& of) {
    const auto result = read({".debug_frame", SHF_COMPRESSED, k_of_zstd, size, of});
    EXPECT_STREQ(result ? "" : result.error().what, k_broken_zstd);
    return result ? ErrorCode::unspecified : result.error().code;
  };
  for (std::size_t cut = 0; cut < stream.size(); ++cut)
    EXPECT_EQ(error(text.size(), RawBytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(cut))),
              ErrorCode::bad_encoding);
  for (const std::uint64_t size : {std::size_t{0}, text.size() - 1, text.size() + 1})
    EXPECT_EQ(error(size, stream), ErrorCode::bad_encoding);
  for (const std::uint64_t size : {stream.size() << 16, (std::size_t{1} << 30) + 1, ~std::size_t{0}})
    EXPECT_EQ(error(size, stream), ErrorCode::too_deep);
  // The frame is one of release 0.7, whose decoder calls malloc.
  stream[first] = std::byte{0x27};
  EXPECT_EQ(error(text.size(), stream), ErrorCode::bad_encoding);
}
#endif

/// Returns the name at 0x1008 in a file whose .symtab and .strtab are compressed by `compress`.
template <class Compress>
std::string name_by_symbols(std::uint32_t type, Compress compress) {
  ElfBuilder b(true, false);
  const auto section = [&](std::string name, std::uint32_t kind, const RawBytes& bytes, std::uint32_t link,
                           std::uint64_t entry) {
    const std::string text = text_of(bytes);
    return BuiltSection{name, kind,           contents_of({name, SHF_COMPRESSED, type, text.size(), compress(text)}, b),
                        0,    SHF_COMPRESSED, link,
                        entry};
  };
  b.sections = {
      {".text", SHT_NOBITS, {}, 0x1000, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x1000},
      section(".symtab", SHT_SYMTAB, b.symbols({{1, 0x1000, 16, STT_FUNC, STB_GLOBAL, 1}}), 3, sizeof(Elf64_Sym)),
      section(".strtab", SHT_STRTAB, b.bytes().text("").text("compressed").vector(), 0, 0)};
  const TemporaryFolder folder;
  const RawBytes file = b.build();
  std::ofstream(folder / "file", std::ios::binary) << text_of(file);
  EXPECT_EQ(ElfImage::parse(file)->symbols(SHT_SYMTAB).count(), 0u) << "compressed bytes are no symbols";
  const auto files = ModuleFiles::open((folder / "file").c_str(), nullptr);
  const auto found = files ? (*files)->find_symbol(0x1008) : std::nullopt;
  return found ? std::string(found->name) : "none";
}

TEST(CompressedSymbols, GiveNames) {
  EXPECT_EQ(name_by_symbols(ELFCOMPRESS_ZLIB, [](const std::string& text) { return deflated(text); }), "compressed");
  EXPECT_EQ(name_by_symbols(ELFCOMPRESS_ZLIB, &bytes_of), "none");
#ifdef HAS_ZSTD
  EXPECT_EQ(name_by_symbols(k_of_zstd, &zstd), "compressed");
#endif
}

TEST(CompressedSections, CutInTheirHeaderAreRefused) {
  ElfBuilder b(true, false);
  b.sections = {{".debug_frame", SHT_PROGBITS, RawBytes(23), 0, SHF_COMPRESSED},
                {".zdebug_frame", SHT_PROGBITS, bytes_of("ZLIB1234567")},
                {".zdebug_other", SHT_PROGBITS, bytes_of("BLIZ12345678")}};
  const RawBytes file = b.build();
  const auto image = ElfImage::parse(file);
  EXPECT_EQ(read_section(*image, *image->find_section(".debug_frame")).error().code, ErrorCode::truncated);
  EXPECT_EQ(read_section(*image, *image->find_section(".zdebug_frame")).error().code, ErrorCode::truncated);
  EXPECT_EQ(read_section(*image, *image->find_section(".zdebug_other")).error().code, ErrorCode::bad_encoding);
}

TEST(Xz, ComesBackWhole) {
  for (const std::size_t size : {1ul, 5000ul, 300000ul})
    for (const std::uint32_t preset : {0u, 6u, 9u}) {
      const std::string text = random_text(size, 7);
      const auto block = decompress_xz(xz(text, preset));
      ASSERT_TRUE(block) << size << " " << preset << " " << block.error().what;
      EXPECT_EQ(text_of(block->bytes()), text);
    }
}

TEST(Xz, ThatIsBrokenIsRefused) {
  const std::string text = random_text(3000, 8);
  const RawBytes stream = xz(text);
  EXPECT_EQ(decompress_xz({}).error().code, ErrorCode::bad_encoding);
  EXPECT_EQ(decompress_xz(bytes_of("no xz stream at all")).error().code, ErrorCode::bad_encoding);
  EXPECT_EQ(decompress_xz(xz("")).error().code, ErrorCode::bad_encoding);
  for (std::size_t cut = 1; cut < stream.size(); cut += 7)
    EXPECT_FALSE(decompress_xz(std::span(stream).first(cut))) << cut;
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    RawBytes changed = stream;
    changed[random() % changed.size()] ^= static_cast<std::byte>(1 + random() % 255);
    const auto block = decompress_xz(changed);
    // Padding may change without harm; a checksum protects the contents.
    if (block) {
      EXPECT_EQ(text_of(block->bytes()), text);
    }
  }
}

TEST(Xz, IsBoundedInSizeAndMemory) {
  // 129 MiB of zeros in some 20 KiB.
  EXPECT_EQ(decompress_xz(xz(std::string(std::size_t{129} << 20, '\0'), 0)).error().code, ErrorCode::too_deep);

  // The .xz file format, 3.1: behind the 12 bytes of the stream header the block header, its size / 4 - 1, flags,
  // perhaps sizes, filter 0x21 (LZMA2), 1, dictionary size; its CRC-32 in the last 4 bytes. 38: 2 GiB.
  RawBytes stream = xz("small");
  const RawBytes lzma2{std::byte{0x21}, std::byte{1}};
  const auto filter = std::search(stream.begin() + 14, stream.begin() + 24, lzma2.begin(), lzma2.end());
  ASSERT_NE(filter, stream.begin() + 24);
  filter[2] = std::byte{38};
  const std::size_t crc_at = 12 + std::to_integer<std::size_t>(stream[12]) * 4;
  const std::uint32_t crc = ::lzma_crc32(reinterpret_cast<const std::uint8_t*>(stream.data()) + 12, crc_at - 12, 0);
  std::memcpy(stream.data() + crc_at, &crc, sizeof crc);
  EXPECT_EQ(decompress_xz(stream).error().code, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace jitunwind::test

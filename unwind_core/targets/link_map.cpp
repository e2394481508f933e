#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/link_map_p.h"

namespace jitunwind {
namespace {

class LinkMaps {
 public:
  LinkMaps(const Memory& memory, bool big_endian) noexcept : memory_(memory), big_endian_(big_endian) {}

  std::vector<Mapping> take(const ProgramStart& program);

 private:
  static constexpr std::size_t k_most_objects = 4096, k_most_entries = 512, k_most_headers = 512;
  static constexpr std::size_t k_longest_path = 4096, k_word = 8;

  std::optional<std::uint64_t> word(Addr at) const noexcept {
    MemoryWindow window;
    const auto read = read_unsigned(memory_, window, at, k_word, big_endian_, "link map");
    return read ? std::optional(*read) : std::nullopt;
  }
  std::string text(Addr at) const;
  Addr dynamic_section(const ProgramStart& program) const noexcept;
  Addr first_map(Addr dynamic) const noexcept;
  void add(Addr begin, const std::string& path);

  const Memory& memory_;
  bool big_endian_;
  std::vector<Mapping> found_;
};

/// "": there is none, or it has no end.
std::string LinkMaps::text(Addr at) const {
  std::string text;
  MemoryWindow window;
  for (std::array<std::byte, 64> piece; at != 0 && text.size() < k_longest_path; at += piece.size()) {
    const auto got = std::span(piece).first(memory_.read(at, piece, window));
    const auto end = std::ranges::find(got, std::byte{0});
    text.append(reinterpret_cast<const char*>(got.data()), static_cast<std::size_t>(end - got.begin()));
    if (end != got.end()) return text;
    if (got.size() < piece.size()) break;
  }
  return {};
}

/// gABI, chapter 5, "Program Header"; of 64 bits: type and flags, offset, address, ...
Addr LinkMaps::dynamic_section(const ProgramStart& program) const noexcept {
  std::optional<Addr> bias;
  Addr dynamic = 0;
  for (std::size_t i = 0; i < std::min<std::uint64_t>(program.header_count, k_most_headers); ++i) {
    std::array<std::byte, sizeof(Elf64_Phdr)> bytes;
    MemoryWindow window;
    if (memory_.read(program.headers + i * bytes.size(), bytes, window) != bytes.size()) break;
    ByteReader reader(bytes, big_endian_);
    const std::uint32_t type = reader.u32();
    reader.seek(offsetof(Elf64_Phdr, p_vaddr));
    const Addr address = reader.u64();
    if (type == PT_PHDR) bias = program.headers - address;
    if (type == PT_DYNAMIC) dynamic = address;
  }
  return bias && dynamic != 0 ? *bias + dynamic : 0;
}

/// struct r_debug: a version of 4 bytes, the first link map.
Addr LinkMaps::first_map(Addr dynamic) const noexcept {
  for (std::size_t i = 0; dynamic != 0 && i < k_most_entries; ++i, dynamic += 2 * k_word) {
    const auto tag = word(dynamic), value = word(dynamic + k_word);
    if (!tag || !value || *tag == DT_NULL) break;
    if (*tag == DT_DEBUG && *value != 0) return word(*value + k_word).value_or(0);
  }
  return 0;
}

/// The segments of the object whose first page is there. A page belongs to the segment that begins on it.
void LinkMaps::add(Addr begin, const std::string& path) {
  std::array<std::byte, k_page_size> page;
  MemoryWindow window;
  const auto image = ElfImage::parse_loaded(page, memory_.read(page_of(begin), page, window));
  if (!image || path.empty()) return;
  std::optional<Addr> bias;
  for (std::size_t i = 0; i < std::min(image->segment_count(), k_most_headers); ++i) {
    const ElfSegment s = image->segment(i);
    if (s.type != PT_LOAD) continue;
    if (!bias && page_of(s.offset) == 0) bias = page_of(begin) - page_of(s.address);
    if (!bias || s.file_size == 0) continue;
    Mapping mapping;
    mapping.range.begin = page_of(*bias + s.address);
    mapping.range.end = page_of(*bias + s.address + s.file_size + k_page_size - 1);
    mapping.offset = page_of(s.offset);
    mapping.path = path;
    mapping.readable = true;
    if (!mapping.range.empty()) found_.push_back(std::move(mapping));
  }
}

std::vector<Mapping> LinkMaps::take(const ProgramStart& program) {
  add(program.headers, text(program.path));
  // l_addr, l_name, l_ld, l_next. The first one is the program itself, without a name.
  Addr map = first_map(dynamic_section(program));
  for (std::size_t count = 0; map != 0 && count < k_most_objects && found_.size() < Mappings::k_most; ++count) {
    const auto bias = word(map), name = word(map + k_word), next = word(map + 3 * k_word);
    if (!bias || !name || !next) break;
    if (count != 0) add(*bias, text(*name));
    map = *next;
  }
  return std::move(found_);
}

}  // namespace

std::vector<Mapping> mappings_by_link_map(const Memory& memory, bool big_endian, const ProgramStart& program) {
  return program.headers == 0 ? std::vector<Mapping>{} : LinkMaps(memory, big_endian).take(program);
}

}  // namespace jitunwind

#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/core_file_internal.h"

namespace jitunwind {
namespace {

class LinkMaps {
 public:
  LinkMaps(const CoreMemory& memory, bool is_64, bool big_endian) noexcept
      : memory_(memory), word_size_(is_64 ? 8 : 4), big_endian_(big_endian) {}

  std::vector<Mapping> take(const ProgramStart& program);

 private:
  static constexpr std::size_t k_most_objects = 4096, k_most_entries = 512, k_most_headers = 512, k_most_parts = 64;
  static constexpr std::size_t k_longest_path = 4096;

  std::optional<std::uint64_t> word(Addr at) const noexcept {
    MemoryWindow window;
    const auto read = read_unsigned(memory_, window, at, word_size_, big_endian_, "link map");
    return read ? std::optional(*read) : std::nullopt;
  }
  std::string text(Addr at) const;
  Addr dynamic_section(const ProgramStart& program) const noexcept;
  Addr first_map(Addr dynamic) const noexcept;
  void add_program(const ProgramStart& program);
  void add_library(Addr bias, Addr dynamic, const std::string& path);
  bool add(Addr begin, const std::string& path, std::optional<Addr> bias = {});
  void add_segments(const ElfImage& image, Addr begin, const std::string& path);

  const CoreMemory& memory_;
  std::size_t word_size_;
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

Addr dynamic_section_of(const ElfImage& file, Addr headers) noexcept {
  const std::optional<Addr> bias = file.bias_at(headers);
  for (std::size_t i = 0; bias && i < file.segment_count(); ++i)
    if (const ElfSegment s = file.segment(i); s.type == PT_DYNAMIC) return *bias + s.address;
  return 0;
}

/// gABI, chapter 5, "Program Header".
Addr LinkMaps::dynamic_section(const ProgramStart& program) const noexcept {
  if (program.file) return dynamic_section_of(*program.file, program.headers);
  std::optional<Addr> bias;
  Addr dynamic = 0;
  const bool is_64 = word_size_ == 8;
  for (std::size_t i = 0; i < std::min<std::uint64_t>(program.header_count, k_most_headers); ++i) {
    std::array<std::byte, sizeof(Elf64_Phdr)> room;
    const auto bytes = std::span(room).first(is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
    MemoryWindow window;
    if (memory_.read(program.headers + i * bytes.size(), bytes, window) != bytes.size()) break;
    ByteReader reader(bytes, big_endian_);
    const std::uint32_t type = reader.u32();
    reader.seek(is_64 ? offsetof(Elf64_Phdr, p_vaddr) : offsetof(Elf32_Phdr, p_vaddr));
    const Addr address = reader.unsigned_of(word_size_);
    if (type == PT_PHDR) bias = program.headers - address;
    if (type == PT_DYNAMIC) dynamic = address;
  }
  return bias && dynamic != 0 ? *bias + dynamic : 0;
}

/// struct r_debug: a version of 4 bytes, and the first link map, each at a place where a word may begin.
Addr LinkMaps::first_map(Addr dynamic) const noexcept {
  for (std::size_t i = 0; dynamic != 0 && i < k_most_entries; ++i, dynamic += 2 * word_size_) {
    const auto tag = word(dynamic), value = word(dynamic + word_size_);
    if (!tag || !value || *tag == DT_NULL) break;
    if (*tag == DT_DEBUG && *value != 0) return word(*value + word_size_).value_or(0);
  }
  return 0;
}

/// Adds the object whose file's addresses are `bias` lower than those in memory. It begins there if its file's
/// addresses begin at 0. A prelinked one begins in front of its dynamic section.
void LinkMaps::add_library(Addr bias, Addr dynamic, const std::string& path) {
  if (add(bias, path)) return;
  const auto parts = memory_.parts();
  auto at = std::ranges::upper_bound(parts, dynamic, {}, [](const auto& part) { return part.range.begin; });
  for (std::size_t i = 0; i < k_most_parts && at != parts.begin(); ++i)
    if (add((--at)->range.begin, path, bias)) return;
}

/// False: no object begins there, or one with another bias.
bool LinkMaps::add(Addr begin, const std::string& path, std::optional<Addr> bias) {
  std::array<std::byte, k_page_size> page;
  MemoryWindow window;
  const auto image = ElfImage::parse_loaded(page, memory_.read(page_of(begin), page, window));
  if (!image || (bias && image->bias_at(begin) != bias)) return false;
  add_segments(*image, page_of(begin), path);
  return true;
}

/// Adds the segments of the object whose first page is there. A page belongs to the segment that begins on it.
void LinkMaps::add_segments(const ElfImage& image, Addr begin, const std::string& path) {
  if (path.empty()) return;
  const std::optional<Addr> bias = image.bias_at(begin);
  for (std::size_t i = 0; bias && i < std::min(image.segment_count(), k_most_headers); ++i) {
    const ElfSegment s = image.segment(i);
    if (s.type != PT_LOAD || s.file_size == 0) continue;
    Mapping mapping;
    mapping.range.begin = page_of(*bias + s.address);
    mapping.range.end = page_of(*bias + s.address + s.file_size + k_page_size - 1);
    mapping.offset = page_of(s.offset);
    mapping.path = path;
    mapping.readable = true;
    if (!mapping.range.empty()) found_.push_back(std::move(mapping));
  }
}

/// Adds the program by its own first page, or else by that of its file, which the headers follow at once.
void LinkMaps::add_program(const ProgramStart& program) {
  const std::string path = text(program.path);
  add(program.headers, path);
  if (found_.empty() && program.file)
    add_segments(*program.file, page_of(program.headers), path.empty() ? program.file_path : path);
}

std::vector<Mapping> LinkMaps::take(const ProgramStart& program) {
  add_program(program);
  // Members: l_addr, l_name, l_ld, l_next. The first map is the program itself, without a name.
  Addr map = first_map(dynamic_section(program));
  for (std::size_t count = 0; map != 0 && count < k_most_objects && found_.size() < Mappings::k_most; ++count) {
    const auto bias = word(map), name = word(map + word_size_), dynamic = word(map + 2 * word_size_),
               next = word(map + 3 * word_size_);
    if (!bias || !name || !dynamic || !next) break;
    if (count != 0) add_library(*bias, *dynamic, text(*name));
    map = *next;
  }
  return std::move(found_);
}

}  // namespace

std::vector<Mapping> mappings_by_link_map(const CoreMemory& memory, const ElfImage& core, const ProgramStart& program) {
  return program.headers == 0 ? std::vector<Mapping>{}
                              : LinkMaps(memory, core.is_64(), core.big_endian()).take(program);
}

}  // namespace jitunwind

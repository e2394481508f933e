// Makes ELF images of both classes and byte orders, right or wrong, for tests.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/bytes.h"

namespace jitunwind::test {

struct BuiltSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  RawBytes data{};
  std::uint64_t address = 0;
  std::uint64_t flags = 0;
  std::uint32_t link = 0;
  std::uint64_t entry_size = 0;
  std::uint64_t alignment = 4;
  std::uint64_t size = 0;  ///< for SHT_NOBITS
};

struct BuiltSegment {
  std::uint32_t type = PT_LOAD;
  std::uint32_t flags = PF_R;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t file_size = 0;
  std::uint64_t memory_size = 0;
  std::uint64_t alignment = 4;
  std::optional<std::size_t> section{};  ///< its contents, which have a place in the file
};

struct BuiltSymbol {
  std::uint32_t name = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
  unsigned type = 0;
  unsigned binding = 0;
  unsigned section = 0;
};

/// Writes the ELF header, program headers, the sections in their order at multiples of 16, and section headers. It adds
/// section 0, and the section names as the last section.
class ElfBuilder {
 public:
  ElfBuilder(bool is_64, bool big_endian) : is_64(is_64), big_endian(big_endian) {}

  bool is_64;
  bool big_endian;
  std::uint16_t type = ET_DYN;
  std::uint16_t machine = EM_X86_64;
  bool numbers_in_section_0 = false;  ///< as if they were too many for the header's fields
  std::vector<BuiltSection> sections{};
  std::vector<BuiltSegment> segments{};

  Bytes bytes() const { return Bytes::in_order(big_endian, is_64 ? 8 : 4); }
  /// Makes a symbol table, with the empty symbol in front.
  RawBytes symbols(const std::vector<BuiltSymbol>& all) const {
    Bytes table = bytes().fill(is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), 0);
    for (const BuiltSymbol& s : all) {
      table.u32(s.name);
      if (!is_64) table.word(s.value).word(s.size);
      table.u8(s.binding << 4 | s.type).u8(0).u16(s.section);
      if (is_64) table.word(s.value).word(s.size);
    }
    return table.vector();
  }
  Bytes note(std::string_view owner, std::uint32_t kind, std::string_view description, std::size_t unit = 4) const {
    Bytes note = bytes().u32(owner.size() + 1).u32(description.size()).u32(kind).text(owner).align(unit);
    return note.characters(description).align(unit);
  }
  std::size_t header_size() const { return is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr); }
  std::size_t segment_size() const { return is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr); }
  std::size_t section_size() const { return is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr); }
  /// Returns the file offset of the contents of sections[index].
  std::size_t offset_of(std::size_t index) const {
    std::size_t at = rounded(header_size() + segments.size() * segment_size());
    for (std::size_t i = 0; i < index; ++i) at = rounded(at + sections[i].data.size());
    return at;
  }

  RawBytes build() const {
    std::string names(1, '\0');
    Bytes headers = bytes();
    section_header(headers, 0, BuiltSection{"", SHT_NULL, {}, 0, 0, names_link(), 0, 0, count_in_0()}, 0,
                   segments_in_0());
    for (std::size_t i = 0; i < sections.size(); ++i) {
      section_header(headers, static_cast<std::uint32_t>(names.size()), sections[i], offset_of(i), 0);
      names += sections[i].name + '\0';
    }
    BuiltSection own{".shstrtab", SHT_STRTAB};
    const auto own_name = static_cast<std::uint32_t>(names.size());
    names += own.name + '\0';
    for (char c : names) own.data.push_back(static_cast<std::byte>(c));
    section_header(headers, own_name, own, offset_of(sections.size()), 0);

    RawBytes out = elf_header(rounded(offset_of(sections.size()) + own.data.size()));
    for (const BuiltSegment& s : segments) append(out, segment_header(s));
    for (std::size_t i = 0; i < sections.size(); ++i) {
      out.resize(offset_of(i));
      append(out, sections[i].data);
    }
    out.resize(offset_of(sections.size()));
    append(out, own.data);
    out.resize(rounded(out.size()));
    append(out, headers.vector());
    return out;
  }

 private:
  static std::size_t rounded(std::size_t size) { return (size + 15) / 16 * 16; }
  static void append(RawBytes& to, const RawBytes& from) { to.insert(to.end(), from.begin(), from.end()); }

  std::uint32_t names_link() const {
    return numbers_in_section_0 ? static_cast<std::uint32_t>(sections.size() + 1) : 0;
  }
  std::uint64_t count_in_0() const { return numbers_in_section_0 ? sections.size() + 2 : 0; }
  std::uint32_t segments_in_0() const { return numbers_in_section_0 ? static_cast<std::uint32_t>(segments.size()) : 0; }

  RawBytes elf_header(std::size_t section_headers) const {
    Bytes h = bytes();
    h.characters(ELFMAG).u8(is_64 ? ELFCLASS64 : ELFCLASS32).u8(big_endian ? ELFDATA2MSB : ELFDATA2LSB).u8(EV_CURRENT);
    h.align(EI_NIDENT).u16(type).u16(machine).u32(EV_CURRENT).word(0x1234);
    h.word(segments.empty() ? 0 : header_size()).word(section_headers).u32(0).u16(header_size());
    h.u16(segment_size()).u16(numbers_in_section_0 ? PN_XNUM : segments.size());
    h.u16(section_size()).u16(numbers_in_section_0 ? 0 : sections.size() + 2);
    h.u16(numbers_in_section_0 ? SHN_XINDEX : sections.size() + 1);
    return h.vector();
  }

  RawBytes segment_header(const BuiltSegment& s) const {
    Bytes h = bytes();
    h.u32(s.type);
    if (is_64) h.u32(s.flags);
    h.word(s.section ? offset_of(*s.section) : s.offset).word(s.address).word(s.address);
    h.word(s.section ? sections[*s.section].data.size() : s.file_size).word(s.memory_size);
    if (!is_64) h.u32(s.flags);
    h.word(s.alignment);
    return h.vector();
  }

  void section_header(Bytes& h, std::uint32_t name, const BuiltSection& s, std::size_t offset,
                      std::uint32_t info) const {
    h.u32(name).u32(s.type).word(s.flags).word(s.address).word(offset);
    h.word(s.data.empty() ? s.size : s.data.size()).u32(s.link).u32(info).word(s.alignment).word(s.entry_size);
  }
};

}  // namespace jitunwind::test

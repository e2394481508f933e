#include <elf.h>

#include "jitunwind/unwind_core/emit/elf_writer_internal.h"

namespace jitunwind {
namespace {

template <class Header, class Segment, class Section, class Symbol, class Dynamic>
constexpr std::size_t k_sizes[] = {sizeof(Header), sizeof(Segment), sizeof(Section), sizeof(Symbol), sizeof(Dynamic)};

}  // namespace

ElfSizes::ElfSizes(const Arch& arch) noexcept {
  const auto& sizes = arch.word_size == 8 ? k_sizes<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym, Elf64_Dyn>
                                          : k_sizes<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym, Elf32_Dyn>;
  header = sizes[0], program_header = sizes[1], section_header = sizes[2], symbol = sizes[3], dynamic = sizes[4];
}

void ElfWriter::head(const ElfHead& head) noexcept {
  text({ELFMAG, SELFMAG});
  out_.u8(has_wide_words() ? ELFCLASS64 : ELFCLASS32);
  out_.u8(arch_.big_endian ? ELFDATA2MSB : ELFDATA2LSB);
  out_.u8(EV_CURRENT);
  out_.pad(EI_NIDENT, 0);
  out_.u16(head.type);
  out_.u16(arch_.elf_machine);
  out_.u32(EV_CURRENT);
  word(0);  // entry
  word(head.segments_at);
  word(head.sections_at);
  out_.u32(0);
  out_.u16(sizes_.header);
  out_.u16(head.segments == 0 ? 0 : sizes_.program_header);
  out_.u16(head.segments);
  out_.u16(sizes_.section_header);
  out_.u16(head.sections);
  out_.u16(head.sections - 1);
}

void ElfWriter::segment(const ElfSegment& segment) noexcept {
  out_.u32(segment.type);
  if (has_wide_words()) out_.u32(segment.flags);
  word(segment.offset);
  word(segment.address);
  word(segment.address);
  word(segment.file_size);
  word(segment.memory_size);
  if (!has_wide_words()) out_.u32(segment.flags);
  word(segment.alignment);
}

void ElfWriter::section(const ElfSection& section) noexcept {
  out_.u32(section.name);
  out_.u32(section.type);
  word(section.flags);
  word(section.address);
  word(section.offset);
  word(section.size);
  out_.u32(section.link);
  out_.u32(section.info);
  word(section.alignment);
  word(section.entry_size);
}

void ElfWriter::symbol(const ElfSymbol& symbol) noexcept {
  const auto place = [&] { word(symbol.value), word(symbol.size); };
  out_.u32(symbol.name);
  if (!has_wide_words()) place();
  out_.u8(static_cast<unsigned>(symbol.binding) << 4 | symbol.type);
  out_.u8(STV_DEFAULT);
  out_.u16(symbol.section);
  if (has_wide_words()) place();
}

}  // namespace jitunwind

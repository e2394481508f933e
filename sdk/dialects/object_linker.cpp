#include "jitunwind/sdk/dialects/object_linker_p.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_most_relocations = std::size_t{1} << 20;

struct Relocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;
  std::uint64_t addend = 0;
};

/// Reads Elf32_Rel, Elf32_Rela, Elf64_Rel and Elf64_Rela.
class RelocationReader {
 public:
  RelocationReader(std::span<const std::byte> entries, bool big_endian, bool is_64, bool has_addends) noexcept
      : reader_(entries, big_endian), word_(is_64 ? 8 : 4), has_addends_(has_addends) {}

  bool has_next() const noexcept { return reader_.remaining() >= word_ * (has_addends_ ? 3 : 2); }
  Relocation next() noexcept {
    Relocation r;
    r.offset = reader_.unsigned_of(word_);
    const std::uint64_t info = reader_.unsigned_of(word_);
    r.type = static_cast<std::uint32_t>(word_ == 8 ? ELF64_R_TYPE(info) : ELF32_R_TYPE(info));
    r.symbol = static_cast<std::uint32_t>(word_ == 8 ? ELF64_R_SYM(info) : ELF32_R_SYM(info));
    if (has_addends_) r.addend = reader_.unsigned_of(word_);
    return r;
  }

 private:
  ByteReader reader_;
  std::size_t word_;
  bool has_addends_;
};

class ObjectLinker {
 public:
  ObjectLinker(const ElfImage& image, std::span<std::byte> file, const Arch& arch) noexcept
      : image_(image), file_(file), arch_(arch), symbols_(image.symbols(SHT_SYMTAB)) {}

  /// Places the symbols of the first symbol table, which has names and which relocations refer to.
  void place_symbols() noexcept {
    const auto table = first_symbols();
    const bool is_64 = image_.is_64();
    if (!table || table->entry_size != symbol_size(is_64)) return;
    const std::size_t value_at = is_64 ? offsetof(Elf64_Sym, st_value) : offsetof(Elf32_Sym, st_value);
    for (std::size_t i = 0; i < symbols_.count(); ++i) {
      const ElfSymbol symbol = symbols_[i];
      const auto section = image_.section_of(symbol);
      if (section && section->address != 0)
        write(bytes_at(table->offset + i * table->entry_size + value_at, is_64 ? 8 : 4),
              section->address + symbol.value);
    }
  }

  void relocate_section(std::size_t number) noexcept {
    const ElfSection section = image_.section(number);
    for (std::size_t i = 0; i < image_.section_count(); ++i) {
      const ElfSection relocations = image_.section(i);
      const bool has_addends = relocations.type == SHT_RELA;
      if ((!has_addends && relocations.type != SHT_REL) || relocations.info != number) continue;
      RelocationReader reader(image_.contents(relocations), arch_.big_endian, image_.is_64(), has_addends);
      for (; reader.has_next() && left_ != 0; --left_) relocate(section, reader.next(), has_addends);
    }
  }

 private:
  std::optional<ElfSection> first_symbols() const noexcept {
    for (std::size_t i = 0; i < image_.section_count(); ++i)
      if (const ElfSection section = image_.section(i); section.type == SHT_SYMTAB) return section;
    return std::nullopt;
  }

  /// A relocation without an addend has its addend in the word at the place.
  void relocate(const ElfSection& section, const Relocation& r, bool has_addend) noexcept {
    const DataRelocations& known = *arch_.relocations;
    const bool is_wide = r.type == known.absolute_64 || r.type == known.relative_64;
    const bool is_relative = r.type == known.relative_64 || r.type == known.relative_32;
    if (!is_wide && r.type != known.absolute_32 && r.type != known.relative_32) return;
    const std::size_t size = is_wide ? 8 : 4;
    if (r.symbol >= symbols_.count() || r.offset > section.size || size > section.size - r.offset) return;
    const ElfSymbol symbol = symbols_[r.symbol];
    if (!image_.section_of(symbol)) return;
    const std::span<std::byte> place = bytes_at(section.offset + r.offset, size);
    const std::uint64_t addend = has_addend ? r.addend : ByteReader(place, arch_.big_endian).unsigned_of(size);
    write(place, symbol.value + addend - (is_relative ? section.address + r.offset : 0));
  }

  /// Returns an empty span if the file does not have these bytes.
  std::span<std::byte> bytes_at(std::uint64_t offset, std::size_t size) const noexcept {
    if (offset > file_.size() || size > file_.size() - offset) return {};
    return file_.subspan(static_cast<std::size_t>(offset), size);
  }
  void write(std::span<std::byte> place, std::uint64_t value) noexcept {
    if (!place.empty()) ByteWriter(place, arch_.big_endian).unsigned_of(value, place.size());
  }

  const ElfImage& image_;
  std::span<std::byte> file_;
  const Arch& arch_;
  ElfSymbols symbols_;
  std::size_t left_ = k_most_relocations;
};

}  // namespace

void link_object(const ElfImage& image, std::span<std::byte> file, std::span<const std::string_view> sections,
                 const Arch& arch) noexcept {
  ObjectLinker linker(image, file, arch);
  linker.place_symbols();
  if (!arch.relocations) return;
  for (const std::string_view name : sections) {
    for (std::size_t i = 0; i < image.section_count(); ++i) {
      if (image.name(image.section(i)) != name) continue;
      linker.relocate_section(i);
      break;
    }
  }
}

const char* decompress_sections(std::vector<std::byte>& file, std::span<const std::string_view> sections,
                                std::size_t most) {
  const auto image = ElfImage::parse(file);
  if (!image) return nullptr;
  const std::size_t word = image->is_64() ? 8 : 4;
  std::vector<std::byte> added;
  const char* why = nullptr;
  for (std::size_t i = 0; i < image->section_count(); ++i) {
    const ElfSection section = image->section(i);
    if ((section.flags & SHF_COMPRESSED) == 0 || std::ranges::count(sections, image->name(section)) == 0) continue;
    const auto data = read_section(*image, section);
    if (!data)
      why = data.error().what;
    else if (data->bytes.size() > most - file.size() - added.size())
      why = "compressed section that makes a file too large";
    if (why) break;
    // Elf32_Shdr and Elf64_Shdr: two numbers of 4 bytes, then words: flags, address, offset, size.
    const auto change = [&](std::size_t words_before, std::uint64_t value) {
      const std::size_t at = image->header_offset(i) + 8 + words_before * word;
      ByteWriter(std::span(file).subspan(at, word), image->big_endian()).unsigned_of(value, word);
    };
    change(0, section.flags & ~std::uint64_t{SHF_COMPRESSED});
    change(2, file.size() + added.size());
    change(3, data->bytes.size());
    added.insert(added.end(), data->bytes.begin(), data->bytes.end());
  }
  file.insert(file.end(), added.begin(), added.end());
  return why;
}

}  // namespace jitunwind

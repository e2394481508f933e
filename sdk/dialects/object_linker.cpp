#include "jitunwind/sdk/dialects/object_linker_p.h"

#include <elf.h>

#include <cstddef>
#include <optional>

#include "jitunwind/unwind_core/arch/data_relocations_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_most_relocations = std::size_t{1} << 20;

struct Relocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;
  std::uint64_t addend = 0;
};

/// Elf64_Rela.
Relocation read_relocation(ByteReader& reader) noexcept {
  Relocation r;
  r.offset = reader.u64();
  const std::uint64_t info = reader.u64();
  r.type = static_cast<std::uint32_t>(ELF64_R_TYPE(info));
  r.symbol = static_cast<std::uint32_t>(ELF64_R_SYM(info));
  r.addend = reader.u64();
  return r;
}

class ObjectLinker {
 public:
  ObjectLinker(const ElfImage& image, std::span<std::byte> file, const Arch& arch) noexcept
      : image_(image), file_(file), arch_(arch), symbols_(image.symbols(SHT_SYMTAB)) {}

  /// Those of the first symbol table, which is the one that has names and that relocations mean.
  void place_symbols() noexcept {
    const auto table = first_symbols();
    const bool is_64 = image_.is_64();
    if (!table || table->entry_size != symbol_size(is_64)) return;
    const std::size_t value_at = is_64 ? offsetof(Elf64_Sym, st_value) : offsetof(Elf32_Sym, st_value);
    for (std::size_t i = 0; i < symbols_.count(); ++i) {
      const ElfSymbol symbol = symbols_[i];
      const auto section = image_.section_of(symbol);
      if (section && section->address != 0)
        write(table->offset + i * table->entry_size + value_at, section->address + symbol.value, is_64 ? 8 : 4);
    }
  }

  /// The section of that number.
  void relocate_section(std::size_t number) noexcept {
    for (std::size_t i = 0; i < image_.section_count(); ++i) {
      const ElfSection relocations = image_.section(i);
      if (relocations.type != SHT_RELA || relocations.info != number) continue;
      ByteReader reader(image_.contents(relocations), arch_.big_endian);
      for (; reader.remaining() >= sizeof(Elf64_Rela) && left_ != 0; --left_)
        relocate(image_.section(number), read_relocation(reader));
    }
  }

 private:
  std::optional<ElfSection> first_symbols() const noexcept {
    for (std::size_t i = 0; i < image_.section_count(); ++i)
      if (const ElfSection section = image_.section(i); section.type == SHT_SYMTAB) return section;
    return std::nullopt;
  }

  void relocate(const ElfSection& section, const Relocation& r) noexcept {
    const DataRelocations& known = *arch_.relocations;
    const bool is_wide = r.type == known.absolute_64 || r.type == known.relative_64;
    const bool is_relative = r.type == known.relative_64 || r.type == known.relative_32;
    if (!is_wide && r.type != known.absolute_32 && r.type != known.relative_32) return;
    const std::size_t size = is_wide ? 8 : 4;
    if (r.symbol >= symbols_.count() || r.offset > section.size || size > section.size - r.offset) return;
    const ElfSymbol symbol = symbols_[r.symbol];
    if (!image_.section_of(symbol)) return;
    const std::uint64_t place = is_relative ? section.address + r.offset : 0;
    write(section.offset + r.offset, symbol.value + r.addend - place, size);
  }

  void write(std::uint64_t offset, std::uint64_t value, std::size_t size) noexcept {
    if (offset > file_.size() || size > file_.size() - offset) return;
    ByteWriter(file_.subspan(static_cast<std::size_t>(offset), size), arch_.big_endian).unsigned_of(value, size);
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
  if (!image.is_64() || !arch.relocations) return;
  for (const std::string_view name : sections) {
    for (std::size_t i = 0; i < image.section_count(); ++i) {
      if (image.name(image.section(i)) != name) continue;
      linker.relocate_section(i);
      break;
    }
  }
}

}  // namespace jitunwind

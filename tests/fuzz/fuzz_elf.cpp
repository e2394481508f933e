// Input: a byte of options, then an ELF file. Options: bit 0 the file as it is loaded in memory.
#include <elf.h>

#include <algorithm>
#include <array>
#include <memory>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"
#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

constexpr std::size_t k_max_addresses = 64;

bool lies_in(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_segments(const ElfImage& image) {
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment s = image.segment(i);
    if (i >= k_max_addresses) break;
    const auto bytes = image.at_address(s.address, s.file_size);
    fuzz::check(lies_in(bytes, image.bytes()), "a segment is in the file");
    fuzz::check(bytes.empty() || bytes.size() == s.file_size, "a segment is whole or absent");
    fuzz::check(lies_in(image.from_address(s.address + 1), image.bytes()), "the rest of a segment is in the file");
  }
  fuzz::check(lies_in(image.header_bytes(), image.bytes()), "headers are in the file");
}

void read_sections(const ElfImage& image) {
  for (std::size_t i = 0; i < std::min(image.section_count(), k_max_addresses); ++i) {
    const ElfSection s = image.section(i);
    const auto stored = image.contents(s);
    fuzz::check(lies_in(stored, image.bytes()), "a section is in the file");
    if (const std::string_view name = image.name(s); !name.empty() && name.find('\0') == name.npos) {
      const auto found = image.find_section(name);
      fuzz::check(found && image.name(*found) == name, "a section is found by its name");
    }
    const auto read = read_section(image, s);
    const bool compressed = (s.flags & SHF_COMPRESSED) != 0 || image.name(s).starts_with(".zdebug");
    if (!compressed) fuzz::check(read && read->bytes.data() == stored.data(), "a section is read in place");
    if (image.name(s) == ".gnu_debugdata")
      if (const auto little = decompress_xz(stored)) (void)ElfImage::parse(little->bytes());
  }
}

void find_symbols(const ElfImage& image) {
  const auto symtab = read_symbols(image);
  std::array<SymbolTable, 2> tables{SymbolTable{&image, symtab ? symtab->symbols : ElfSymbols{}},
                                    SymbolTable{&image, image.dynamic_symbols(0x10000)}};
  if (tables[0].symbols.count() == 0) tables[0].symbols = image.symbols(SHT_DYNSYM);
  const auto index = SymbolIndex::make(tables);
  if (!index) return;
  const auto compare = [&](Addr at) {
    const auto plain = find_symbol(tables, at);
    const auto indexed = index->find(at);
    fuzz::check(plain.has_value() == indexed.has_value(), "index and search agree");
    if (!plain) return;
    fuzz::check(plain->name == indexed->name && plain->start == indexed->start, "index and search agree on the name");
    fuzz::check(plain->start <= at && !plain->name.empty(), "a symbol begins at or below what it names");
  };
  for (const SymbolTable& table : tables)
    for (std::size_t i = 0; i < std::min(table.symbols.count(), k_max_addresses); ++i) {
      const ElfSymbol s = table.symbols[i];
      for (const Addr at : {s.value, s.value + s.size - 1, s.value + s.size}) compare(at);
    }
}

/// The file's bytes, copied part by part.
class Parts final : public CopiedParts {
 public:
  explicit Parts(std::span<const std::byte> bytes) : bytes_(bytes) { set_size(bytes.size()); }

 private:
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    const auto there = bytes_.subspan(static_cast<std::size_t>(offset), into.size());
    std::ranges::copy(there, into.begin());
    return there.size();
  }
  std::span<const std::byte> bytes_;
};

bool is_same_or_absent(std::span<const std::byte> copied, std::span<const std::byte> in_place) {
  return copied.empty() || std::ranges::equal(copied, in_place);
}

/// The copied file only lacks parts, if there are too many; nothing else differs.
void read_copied(std::span<const std::byte> file, bool is_loaded, const ElfImage& in_place) {
  const auto parts = std::make_unique<Parts>(file);
  const auto image = is_loaded ? ElfImage::parse_loaded(*parts) : ElfImage::parse(*parts);
  if (!image) return;
  fuzz::check(is_same_or_absent(image->header_bytes(), in_place.header_bytes()), "copied headers are the same");
  fuzz::check(is_same_or_absent(image->build_id(), in_place.build_id()), "a copied build id is the same");
  for (const std::uint32_t type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    const ElfSymbols copied = image->symbols(type);
    fuzz::check(is_same_or_absent(copied.strings(), in_place.symbols(type).strings()), "copied strings are the same");
    fuzz::check(copied.count() == 0 || copied.count() == in_place.symbols(type).count(), "copied symbols are as many");
  }
  const SymbolTable table{&*image, image->symbols(SHT_SYMTAB)};
  if (const auto index = SymbolIndex::make(std::span(&table, 1)); index && table.symbols.count() != 0)
    (void)index->find(table.symbols[0].value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data + 1, size - 1));
  const auto image = (data[0] & 1) != 0 ? ElfImage::parse_loaded(file, file.size()) : ElfImage::parse(file);
  if (!image) return 0;
  read_segments(*image);
  read_sections(*image);
  find_symbols(*image);
  read_copied(file, (data[0] & 1) != 0, *image);
  fuzz::check(lies_in(image->build_id(), file), "the build id is in the file");
  if (!image->build_id().empty()) fuzz::check(is_same_object(*image, *image), "an object is itself");
  return 0;
}

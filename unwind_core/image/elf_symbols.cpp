// The symbol tables of an ELF object, found by sections or by PT_DYNAMIC (gABI, chapter 4 "Symbol Table", chapter 5
// "Dynamic Section", "Hash Table").
#include <elf.h>

#include <algorithm>

#include "jitunwind/unwind_core/image/elf_internal.h"

namespace jitunwind {

static_assert(symbol_size(true) == sizeof(Elf64_Sym) && symbol_size(false) == sizeof(Elf32_Sym));

ElfSymbol read_symbol(ByteReader& r, bool is_64) noexcept {
  ElfSymbol s;
  s.name = r.u32();
  std::uint8_t info = 0;
  if (is_64) {
    info = r.u8();
    r.skip(1);  // st_other
    s.section = r.u16();
    s.value = r.u64();
    s.size = r.u64();
  } else {
    s.value = r.u32();
    s.size = r.u32();
    info = r.u8();
    r.skip(1);
    s.section = r.u16();
  }
  s.type = info & 0xf;
  s.binding = static_cast<std::uint8_t>(info >> 4);
  return s;
}

bool ElfDynamic::take(std::uint64_t tag, std::uint64_t value) noexcept {
  switch (tag) {
    case DT_NULL:
      return false;
    case DT_SYMTAB:
      symbols = value;
      break;
    case DT_STRTAB:
      strings = value;
      break;
    case DT_STRSZ:
      strings_size = value;
      break;
    case DT_HASH:
      hash = value;
      break;
    case DT_GNU_HASH:
      gnu_hash = value;
      break;
    case DT_RELA:
      relocations = value;
      break;
    case DT_RELASZ:
      relocations_size = value;
      break;
    case DT_RELACOUNT:
      relative_relocations = value;
      break;
    case DT_JMPREL:
      call_relocations = value;
      break;
    case DT_PLTRELSZ:
      call_relocations_size = value;
      break;
    case DT_PLTREL:
      call_relocations_kind = value;
      break;
    case DT_FLAGS_1:
      flags = value;
      break;
    default:
      break;
  }
  return true;
}

ElfSymbol ElfSymbols::operator[](std::size_t index) const noexcept {
  ByteReader r(entries_.subspan(index * entry_size_, entry_size_), big_endian_);
  return read_symbol(r, is_64_);
}

std::string_view ElfSymbols::name(const ElfSymbol& symbol) const noexcept {
  if (symbol.name >= strings_.size()) return {};
  return ByteReader(strings_.subspan(symbol.name), big_endian_).c_string();
}

std::string_view ElfSymbols::beginning(const ElfSymbol& symbol, std::size_t size) const noexcept {
  if (symbol.name >= strings_.size()) return {};
  const auto bytes = strings_.subspan(symbol.name, std::min(size, strings_.size() - symbol.name));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ElfSymbols ElfImage::symbols_of(std::span<const std::byte> entries, std::span<const std::byte> strings) const noexcept {
  return {entries, strings, symbol_size(is_64_), is_64_, big_endian_};
}

std::optional<ElfSection> ElfImage::symbol_section(std::uint32_t type) const noexcept {
  for (std::size_t i = 0; i < section_count_; ++i) {
    const ElfSection s = section(i);
    // The gABI allows larger entries, but nobody writes them. A false size must not shift the fields.
    if (s.type == type && s.link < section_count_ && s.entry_size == symbol_size(is_64_)) return s;
  }
  return std::nullopt;
}

bool ElfImage::has_symbols(std::uint32_t section_type) const noexcept {
  const auto section = symbol_section(section_type);
  return section && section->size >= symbol_size(is_64_) && section->offset <= size() &&
         section->size <= size() - section->offset;
}

ElfSymbols ElfImage::symbols(std::uint32_t section_type) const noexcept {
  const auto table = symbol_section(section_type);
  if (!table || ((table->flags | section(table->link).flags) & SHF_COMPRESSED) != 0) return {};
  return symbols_of(contents(*table), contents(section(table->link)));
}

ElfSymbols ElfImage::dynamic_symbols(Addr bias) const noexcept {
  ElfDynamic dynamic;
  for (std::size_t i = 0; i < segment_count_; ++i) {
    const ElfSegment s = segment(i);
    if (s.type != PT_DYNAMIC) continue;
    ByteReader r = reader(at_address(s.address, s.file_size));
    while (r.ok() && !r.at_end()) {
      const std::uint64_t tag = word(r);
      if (!dynamic.take(tag, word(r))) break;
    }
    break;  // the gABI allows only one
  }
  // glibc relocates these pointers in place; other dynamic linkers and the kernel's object (vDSO) do not.
  const auto unrelocated = [&](Addr at) { return bias != 0 && from_address(at).empty() ? at - bias : at; };
  const std::uint64_t count = dynamic.hash != 0       ? hash_count(unrelocated(dynamic.hash))
                              : dynamic.gnu_hash != 0 ? gnu_hash_count(unrelocated(dynamic.gnu_hash))
                                                      : 0;
  const std::uint64_t size = count * symbol_size(is_64_);
  return symbols_of(at_address(unrelocated(dynamic.symbols), size),
                    at_address(unrelocated(dynamic.strings), dynamic.strings_size));
}

/// DT_HASH begins with nbucket and nchain. It has one chain entry for every symbol.
std::uint64_t ElfImage::hash_count(Addr hash) const noexcept {
  ByteReader r = reader(at_address(hash, 8));
  r.skip(4);
  return r.u32();
}

/// DT_GNU_HASH stores no count. It holds, in this order: nbuckets, the first hashed symbol, the number of Bloom words
/// and the Bloom shift; the Bloom words; the buckets, each with the first symbol of its chain; the hash of every hashed
/// symbol. Bit 0 of a hash is set at the end of a chain. The last symbol is the end of the chain that begins last.
std::uint64_t ElfImage::gnu_hash_count(Addr hash) const noexcept {
  ByteReader r = reader(at_address(hash, 16));
  const std::uint64_t buckets = r.u32();
  const std::uint64_t first = r.u32();
  const std::uint64_t bloom = std::uint64_t{r.u32()} * (is_64_ ? 8 : 4);
  const Addr buckets_at = hash + 16 + bloom;
  ByteReader bucket = reader(at_address(buckets_at, buckets * 4));
  std::uint64_t last = 0;
  while (bucket.ok() && !bucket.at_end()) last = std::max<std::uint64_t>(last, bucket.u32());
  if (last < first) return first;
  ByteReader chain = reader(from_address(buckets_at + 4 * buckets));
  for (chain.skip(4 * (last - first)); chain.ok(); ++last)
    if (chain.u32() & 1) return last + 1;
  return 0;
}

}  // namespace jitunwind

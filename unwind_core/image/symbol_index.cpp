#include "jitunwind/unwind_core/image/symbol_index_internal.h"

#include <elf.h>

#include <algorithm>

#include "jitunwind/unwind_core/image/copied_parts_p.h"

namespace jitunwind {
/// A copied symbol with the properties that the rule compares. Sorting needs data that does not change meanwhile, as a
/// mapped file may.
struct SymbolCandidate {
  Addr start = 0;
  Addr end = 0;             ///< equal to start without a size
  std::uint32_t index = 0;  ///< in its table
  std::uint8_t table = 0;
  std::uint8_t rank = 0;  ///< type and binding; the greater is preferred

  bool is_sized() const noexcept { return end > start; }
  bool covers(Addr at) const noexcept { return at >= start && at < end; }
};

namespace {

/// The order of the rule: the last one among the symbols that start at or below an address is preferred.
bool less_preferred(const SymbolCandidate& a, const SymbolCandidate& b) noexcept {
  if (a.start != b.start) return a.start < b.start;
  if (a.is_sized() != b.is_sized()) return b.is_sized();
  if (a.rank >> 4 != b.rank >> 4) return a.rank < b.rank;
  if (a.end != b.end) return a.end > b.end;
  if (a.rank != b.rank) return a.rank < b.rank;
  return a.table != b.table ? a.table > b.table : a.index > b.index;
}

std::uint8_t rank_of(const ElfSymbol& symbol) noexcept {
  const unsigned is_function = symbol.type != STT_NOTYPE;
  const unsigned binding = symbol.binding == STB_LOCAL ? 0 : symbol.binding == STB_WEAK ? 1 : 2;
  return static_cast<std::uint8_t>(is_function << 4 | binding);
}

/// Mapping symbols such as "$x" and "$d.anything" (AAELF64 5.5.5, RISC-V ELF psABI "Mapping Symbol").
bool is_mapping_symbol(std::string_view three) noexcept {
  return three.size() == 3 && three[0] == '$' && three[1] != '\0' && (three[2] == '\0' || three[2] == '.');
}

/// The places of symbols. The place of a symbol is its section, or its segment in an image without sections. Objects
/// have about ten segments; only hostile ones have more than 64.
class Places {
 public:
  explicit Places(const ElfImage& image) noexcept
      : image_(image), segments_(std::min<std::size_t>(image.segment_count(), 64)) {}

  static constexpr std::uint16_t k_none = 0xffff;

  std::size_t count() const noexcept { return sections() + segments_; }
  AddrRange range(std::size_t place) const noexcept {
    if (place >= count()) return {};
    return place < sections() ? image_.section(place).range() : image_.segment(place - sections()).range();
  }
  bool is_executable(std::size_t place) const noexcept {
    if (place >= count()) return false;
    return place < sections() ? (image_.section(place).flags & SHF_EXECINSTR) != 0
                              : (image_.segment(place - sections()).flags & PF_X) != 0;
  }
  std::uint16_t of(const ElfSymbol& symbol) const noexcept {
    if (image_.section_of(symbol)) return symbol.section;
    for (std::size_t i = 0; i < segments_; ++i) {
      const ElfSegment s = image_.segment(i);
      if (s.type == PT_LOAD && s.range().contains(symbol.value)) return static_cast<std::uint16_t>(sections() + i);
    }
    return k_none;
  }

 private:
  /// The number of sections that a symbol can name (gABI, chapter 4 "Sections": reserved indexes).
  std::size_t sections() const noexcept { return std::min<std::size_t>(image_.section_count(), SHN_LORESERVE); }

  const ElfImage& image_;
  std::size_t segments_;
};

bool is_eligible(const SymbolTable& table, const ElfSymbol& symbol) noexcept {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS || symbol.name == 0) return false;
  if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) return true;
  const Places places(*table.image);
  return symbol.type == STT_NOTYPE && places.is_executable(places.of(symbol)) &&
         !is_mapping_symbol(table.symbols.beginning(symbol, 3));
}

/// The start of the symbol's code. Functions of the first PPC64 ABI are descriptors in data: the first word of a
/// descriptor is the start of the code (64-bit PowerPC ELF ABI 1.9, 3.2.2 "Function Descriptors"). The word is 0 in a
/// descriptor that is relocated at load time.
Addr code_of(const SymbolTable& table, const ElfSymbol& symbol) noexcept {
  constexpr std::size_t k_word = 8;
  if (table.image->machine() != EM_PPC64 || symbol.type == STT_NOTYPE) return symbol.value;
  const Places places(*table.image);
  if (places.is_executable(places.of(symbol))) return symbol.value;
  ByteReader descriptor(table.image->at_address(symbol.value, k_word), table.image->big_endian());
  const Addr code = descriptor.u64();
  return descriptor.ok() && code != 0 ? code : symbol.value;
}

/// Calls `use(candidate)` for every eligible symbol.
template <class Use>
void for_each_candidate(std::span<const SymbolTable> tables, Use use) noexcept {
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const ElfSymbols& symbols = tables[t].symbols;
    for (std::size_t i = 0; i < symbols.count(); ++i) {
      const ElfSymbol symbol = symbols[i];
      if (!is_eligible(tables[t], symbol)) continue;
      const Addr start = code_of(tables[t], symbol);
      const Addr end = start + std::min<std::uint64_t>(symbol.size, ~Addr{0} - start);
      use(SymbolCandidate{start, end, static_cast<std::uint32_t>(i), static_cast<std::uint8_t>(t), rank_of(symbol)});
    }
  }
}

/// Linkers write "name@VERSION" and "name@@VERSION" into .symtab; .dynsym has the versions elsewhere.
std::string_view without_version(std::string_view name) noexcept {
  const std::size_t at = name.find('@');
  return at == 0 ? name : name.substr(0, at);
}

struct Wanted {
  Addr at;
  NameReach reach;
};

/// `covered` is the greatest end of the symbols that start at or below the address. A label reaches to the end of its
/// `place`.
bool names(const SymbolCandidate& candidate, AddrRange place, Addr covered, const Wanted& wanted) noexcept {
  if (candidate.covers(wanted.at)) return true;
  const bool is_label_of_its_own = covered <= candidate.start;
  return (is_label_of_its_own || wanted.reach == NameReach::next) && place.contains(wanted.at);
}

std::optional<FoundSymbol> found(std::string_view name, Addr start) noexcept {
  name = without_version(name);
  return name.empty() ? std::nullopt : std::optional(FoundSymbol{name, start});
}

}  // namespace

std::optional<FoundSymbol> find_symbol(std::span<const SymbolTable> tables, Addr at, NameReach reach) noexcept {
  std::optional<SymbolCandidate> covering, nearest;
  Addr covered = 0;
  for_each_candidate(tables, [&](const SymbolCandidate& c) {
    if (c.start > at) return;
    covered = std::max(covered, c.end);
    if (!nearest || less_preferred(*nearest, c)) nearest = c;
    if (c.covers(at) && (!covering || less_preferred(*covering, c))) covering = c;
  });
  if (!nearest) return std::nullopt;
  const SymbolCandidate& best = covering ? *covering : *nearest;
  const SymbolTable& table = tables[best.table];
  const ElfSymbol symbol = table.symbols[best.index];
  const Places places(*table.image);
  if (!names(best, places.range(places.of(symbol)), covered, {at, reach})) return std::nullopt;
  return found(table.symbols.name(symbol), best.start);
}

struct SymbolIndex::Entry : SymbolCandidate {
  std::uint16_t place = Places::k_none;
  Addr reach = 0;  ///< greatest end of this entry and all previous ones
  // After sorting, `index` is the offset of the name.
};

std::span<const SymbolIndex::Entry> SymbolIndex::entries() const noexcept {
  return {reinterpret_cast<const Entry*>(memory_.bytes().data()), size_};
}

bool SymbolIndex::keep(const SymbolTable& table, Kept& kept) noexcept {
  const auto strings = table.symbols.strings();
  const Places places(*table.image);
  if (CopiedParts* const parts = table.image->parts()) kept.strings = parts->take(strings);
  if (kept.strings.empty()) {
    kept.strings = Block::whole(std::max<std::size_t>(strings.size(), 1));
    if (kept.strings.empty()) return false;
    std::ranges::copy(strings, kept.strings.bytes().begin());
  }
  kept.places = Block(std::max<std::size_t>(places.count(), 1) * sizeof(AddrRange));
  if (kept.places.empty()) return false;
  auto* const ranges = reinterpret_cast<AddrRange*>(kept.places.bytes().data());
  for (std::size_t i = 0; i < places.count(); ++i) new (ranges + i) AddrRange(places.range(i));
  return true;
}

Result<SymbolIndex> SymbolIndex::make(std::span<const SymbolTable> tables) noexcept {
  constexpr Error k_no_memory{ErrorCode::out_of_memory, 0, "symbol index"};
  SymbolIndex index;
  tables = tables.first(std::min(tables.size(), k_most_tables));
  std::size_t most = 0;
  for_each_candidate(tables, [&](const SymbolCandidate&) { ++most; });
  if (most == 0) return index;
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (tables[t].symbols.count() != 0 && !index.keep(tables[t], index.kept_[t])) return k_no_memory;
  index.memory_ = Block::whole(most * sizeof(Entry));
  if (index.memory_.empty()) return k_no_memory;
  Entry* const begin = reinterpret_cast<Entry*>(index.memory_.bytes().data());
  for_each_candidate(tables, [&](const SymbolCandidate& c) {
    if (index.size_ < most) new (begin + index.size_++) Entry{c};
  });
  // The type of the lambda is this file's, and so are the functions of the sort, which are smaller than others.
  std::sort(begin, begin + index.size_, [](const Entry& a, const Entry& b) { return less_preferred(a, b); });
  Addr reach = 0;
  for (Entry* e = begin; e != begin + index.size_; ++e) {
    const SymbolTable& table = tables[e->table];
    const ElfSymbol symbol = table.symbols[e->index];
    e->reach = reach = std::max(reach, e->end);
    e->place = Places(*table.image).of(symbol);
    e->index = symbol.name;
  }
  return index;
}

std::optional<FoundSymbol> SymbolIndex::named(const Entry& best, Addr covered, Addr at,
                                              NameReach reach) const noexcept {
  const Kept& kept = kept_[best.table];
  const auto* const ranges = reinterpret_cast<const AddrRange*>(kept.places.bytes().data());
  const bool has_place = best.place < kept.places.bytes().size() / sizeof(AddrRange);
  if (!names(best, has_place ? ranges[best.place] : AddrRange{}, covered, {at, reach})) return std::nullopt;
  const std::span<const std::byte> strings = kept.strings.bytes();
  if (best.index >= strings.size()) return std::nullopt;
  return found(ByteReader(strings.subspan(best.index), false).c_string(), best.start);
}

std::optional<FoundSymbol> SymbolIndex::find(Addr at, NameReach reach) const noexcept {
  const auto all = entries();
  auto e = std::ranges::upper_bound(all, at, {}, &Entry::start);
  if (e == all.begin()) return std::nullopt;
  const Entry& nearest = *--e;
  for (;; --e) {
    if (e->covers(at)) return named(*e, nearest.reach, at, reach);
    if (e == all.begin() || e->reach <= at) return named(nearest, nearest.reach, at, reach);
  }
}

}  // namespace jitunwind

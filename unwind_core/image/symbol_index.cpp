#include "unwind_core/image/symbol_index_p.h"

#include <elf.h>

#include <algorithm>

namespace jitunwind {
namespace {

/// A symbol as the rule sees it, copied: what is sorted must not change under the sort, as a mapped file may.
struct Candidate {
  Addr start = 0;
  Addr end = 0;  ///< start: without size
  std::uint32_t index = 0;
  std::uint8_t table = 0;
  std::uint8_t rank = 0;  ///< type and binding: the greater is preferred

  bool is_sized() const noexcept { return end > start; }
  bool covers(Addr at) const noexcept { return at >= start && at < end; }
};

/// The order of the rule: the last of those that start at or below an address is the preferred one.
bool less_preferred(const Candidate& a, const Candidate& b) noexcept {
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

/// "$x", "$d.anything": AAELF64 5.5.5, RISC-V ELF psABI "Mapping Symbol".
bool is_mapping_symbol(std::string_view three) noexcept {
  return three.size() == 3 && three[0] == '$' && three[1] != '\0' && (three[2] == '\0' || three[2] == '.');
}

/// The segment that a symbol of an image without sections is in. Objects have about ten; only a liar has more than 64.
std::optional<ElfSegment> segment_of(const ElfImage& image, const ElfSymbol& symbol) noexcept {
  for (std::size_t i = 0; i < std::min<std::size_t>(image.segment_count(), 64); ++i) {
    const ElfSegment s = image.segment(i);
    if (s.type == PT_LOAD && s.range().contains(symbol.value)) return s;
  }
  return std::nullopt;
}

bool is_executable(const ElfImage& image, const ElfSymbol& symbol) noexcept {
  if (const auto section = image.section_of(symbol)) return (section->flags & SHF_EXECINSTR) != 0;
  const auto segment = segment_of(image, symbol);
  return segment && (segment->flags & PF_X) != 0;
}

bool is_eligible(const SymbolTable& table, const ElfSymbol& symbol) noexcept {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS || symbol.name == 0) return false;
  if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) return true;
  return symbol.type == STT_NOTYPE && is_executable(*table.image, symbol) &&
         !is_mapping_symbol(table.symbols.beginning(symbol, 3));
}

/// Calls `use(candidate)` for every eligible symbol.
template <class Use>
void for_each_candidate(std::span<const SymbolTable> tables, Use use) noexcept {
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const ElfSymbols& symbols = tables[t].symbols;
    for (std::size_t i = 0; i < symbols.count(); ++i) {
      const ElfSymbol symbol = symbols[i];
      if (!is_eligible(tables[t], symbol)) continue;
      const Addr end = symbol.value + std::min<std::uint64_t>(symbol.size, ~Addr{0} - symbol.value);
      use(Candidate{symbol.value, end, static_cast<std::uint32_t>(i), static_cast<std::uint8_t>(t), rank_of(symbol)});
    }
  }
}

/// A label reaches to the end of its section; where there are no sections, of its segment.
bool reaches(const ElfImage& image, const ElfSymbol& symbol, Addr at) noexcept {
  if (const auto section = image.section_of(symbol)) return section->range().contains(at);
  const auto segment = segment_of(image, symbol);
  return segment && segment->range().contains(at);
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

/// `covered`: how far symbols that start at or below the address reach.
bool names(const ElfImage& image, const Candidate& candidate, const ElfSymbol& symbol, Addr covered,
           const Wanted& wanted) noexcept {
  if (candidate.covers(wanted.at)) return true;
  const bool is_label_of_its_own = covered <= candidate.start;
  return (is_label_of_its_own || wanted.reach == NameReach::next) && reaches(image, symbol, wanted.at);
}

std::optional<FoundSymbol> named(std::span<const SymbolTable> tables, const Candidate& best, Addr covered,
                                 const Wanted& wanted) noexcept {
  const SymbolTable& table = tables[best.table];
  const ElfSymbol symbol = table.symbols[best.index];
  if (!names(*table.image, best, symbol, covered, wanted)) return std::nullopt;
  const std::string_view name = without_version(table.symbols.name(symbol));
  if (name.empty()) return std::nullopt;
  return FoundSymbol{name, best.start};
}

}  // namespace

std::optional<FoundSymbol> find_symbol(std::span<const SymbolTable> tables, Addr at, NameReach reach) noexcept {
  std::optional<Candidate> covering, nearest;
  Addr covered = 0;
  for_each_candidate(tables, [&](const Candidate& c) {
    if (c.start > at) return;
    covered = std::max(covered, c.end);
    if (!nearest || less_preferred(*nearest, c)) nearest = c;
    if (c.covers(at) && (!covering || less_preferred(*covering, c))) covering = c;
  });
  if (!nearest) return std::nullopt;
  return named(tables, covering ? *covering : *nearest, covered, {at, reach});
}

struct SymbolIndex::Entry : Candidate {
  Addr reach = 0;  ///< greatest end of this and all entries before
};

std::span<const SymbolIndex::Entry> SymbolIndex::entries() const noexcept {
  return {reinterpret_cast<const Entry*>(memory_.bytes().data()), size_};
}

Result<SymbolIndex> SymbolIndex::make(std::span<const SymbolTable> tables) noexcept {
  SymbolIndex index;
  tables = tables.first(std::min(tables.size(), k_most_tables));
  std::ranges::copy(tables, index.tables_.begin());
  std::size_t most = 0;
  for_each_candidate(tables, [&](const Candidate&) { ++most; });
  if (most == 0) return index;
  index.memory_ = Block(most * sizeof(Entry));
  if (index.memory_.empty()) return Error{ErrorCode::out_of_memory, 0, "symbol index"};
  Entry* const begin = reinterpret_cast<Entry*>(index.memory_.bytes().data());
  for_each_candidate(tables, [&](const Candidate& c) {
    if (index.size_ < most) new (begin + index.size_++) Entry{c};
  });
  std::sort(begin, begin + index.size_, less_preferred);
  Addr reach = 0;
  for (Entry* e = begin; e != begin + index.size_; ++e) e->reach = reach = std::max(reach, e->end);
  return index;
}

std::optional<FoundSymbol> SymbolIndex::find(Addr at, NameReach reach) const noexcept {
  const auto all = entries();
  auto e = std::ranges::upper_bound(all, at, {}, &Entry::start);
  if (e == all.begin()) return std::nullopt;
  const Entry& nearest = *--e;
  for (;; --e) {
    if (e->covers(at)) return named(tables_, *e, nearest.reach, {at, reach});
    if (e == all.begin() || e->reach <= at) return named(tables_, nearest, nearest.reach, {at, reach});
  }
}

}  // namespace jitunwind

// Which symbol names an address: one rule, over one or more symbol tables of a module, with or without an index.
//
// Eligible are defined symbols with a name of type STT_FUNC, STT_GNU_IFUNC, or STT_NOTYPE in an executable section;
// not absolute ones, nor the mapping symbols of some psABIs ("$x", "$d.1"). Of those that start at or below the
// address:
//   1. the ones whose st_size covers it: the greatest start, so that the innermost names it;
//   2. none covers: the greatest start, if it has no sized symbol, is not inside of one, and its section holds the
//      address: a label of hand-written assembly reaches to the next symbol, one in a function to the function's end.
//      Behind the end of a sized function nothing has a name: in a stripped library "the nearest symbol below" is as a
//      rule some other function. NameReach::next asks for that one.
// Of several with one start, in this order: sized; a function rather than untyped; the smaller size; global, weak,
// local; the earlier in its table.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

struct FoundSymbol {
  std::string_view name;  ///< in the image's bytes, or the index; without the version, "name@VERSION"
  Addr start = 0;         ///< as in the file: without the load bias
};

/// A symbol table of an image. The image knows the sections.
struct SymbolTable {
  const ElfImage* image = nullptr;
  ElfSymbols symbols{};
};

/// By reading all symbols. `at` as in the file. Pure, signal-safe.
std::optional<FoundSymbol> find_symbol(std::span<const SymbolTable> tables, Addr at,
                                       NameReach reach = NameReach::own) noexcept;

/// The same by binary search. Immutable, and on its own: it has copies of all that it needs of the images.
class SymbolIndex {
 public:
  static constexpr std::size_t k_most_tables = 2;

  /// Reads and sorts all symbols, once: about 0.2 us each. Tables beyond k_most_tables are left out. out_of_memory when
  /// mmap refuses. Signal-safe.
  static Result<SymbolIndex> make(std::span<const SymbolTable> tables) noexcept;

  std::optional<FoundSymbol> find(Addr at, NameReach reach = NameReach::own) const noexcept;
  std::size_t size() const noexcept { return size_; }

 private:
  struct Entry;
  /// What is kept of a table besides its symbols.
  struct Kept {
    Block strings;
    Block places;  // AddrRange of every place
  };
  SymbolIndex() noexcept = default;
  std::span<const Entry> entries() const noexcept;
  bool keep(const SymbolTable& table, Kept& kept) noexcept;
  std::optional<FoundSymbol> named(const Entry& best, Addr covered, Addr at, NameReach reach) const noexcept;

  std::array<Kept, k_most_tables> kept_{};
  Block memory_;
  std::size_t size_ = 0;
};

}  // namespace jitunwind

// The rule by which a symbol names an address. It applies to one or more symbol tables of a module, with or without an
// index.
//
// Defined symbols with a name are eligible if their type is STT_FUNC or STT_GNU_IFUNC, or STT_NOTYPE in an executable
// section. Absolute symbols and the mapping symbols of some psABIs ("$x", "$d.1") are not eligible. Among the eligible
// symbols that start at or below the address, one is chosen as follows:
//   1. If the st_size of some of them covers the address, the greatest start wins, so that the innermost names it.
//   2. Otherwise the greatest start wins if it has no sized symbol, is not inside of one, and its section holds the
//      address. A label of hand-written assembly reaches to the next symbol; a label in a function reaches to the
//      function's end. Behind the end of a sized function nothing has a name: in a stripped library the nearest symbol
//      below is usually an unrelated function. NameReach::next asks for that symbol.
// When several symbols have the same start, these criteria decide in this order: sized; a function rather than untyped;
// the smaller size; global, weak, local; the earlier in its table.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/module.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct FoundSymbol {
  std::string_view name;  ///< refers to the image's bytes or the index; without the version of "name@VERSION"
  Addr start = 0;         ///< as in the file, without the load bias
};

/// A symbol table with its image, which knows the sections.
struct SymbolTable {
  const ElfImage* image = nullptr;
  ElfSymbols symbols{};
};

/// Reads all symbols. `at` is an address as in the file. Pure, signal-safe.
std::optional<FoundSymbol> find_symbol(std::span<const SymbolTable> tables, Addr at,
                                       NameReach reach = NameReach::own) noexcept;

/// Finds the same symbols by binary search. Immutable and independent: it has copies of all that it needs of the
/// images.
class SymbolIndex {
 public:
  static constexpr std::size_t k_most_tables = 2;

  /// Reads and sorts all symbols once, in about 0.2 us per symbol. Tables beyond k_most_tables are left out. Fails with
  /// out_of_memory when mmap refuses. Signal-safe.
  static Result<SymbolIndex> make(std::span<const SymbolTable> tables) noexcept;

  std::optional<FoundSymbol> find(Addr at, NameReach reach = NameReach::own) const noexcept;
  std::size_t size() const noexcept { return size_; }

 private:
  struct Entry;
  /// The kept data of a table besides its symbols.
  struct Kept {
    KeptBlock strings;
    KeptBlock places;  // the AddrRange of every place
  };
  SymbolIndex() noexcept = default;
  std::span<const Entry> entries() const noexcept;
  bool keep(const SymbolTable& table, Kept& kept) noexcept;
  std::optional<FoundSymbol> named(const Entry& best, Addr covered, Addr at, NameReach reach) const noexcept;

  std::array<Kept, k_most_tables> kept_{};
  KeptBlock memory_;
  std::size_t size_ = 0;
};

}  // namespace jitunwind
#pragma GCC visibility pop

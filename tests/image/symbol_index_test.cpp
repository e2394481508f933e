// The rule by which a symbol names an address, case by case, and the index compared with the plain search.
#include <gtest/gtest.h>

#include <random>

#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {
namespace {

struct Symbol {
  const char* name;
  Addr value;
  std::uint64_t size = 0;
  unsigned type = STT_FUNC;
  unsigned binding = STB_GLOBAL;
  unsigned section = 1;
};

/// An image with .text at [0x1000, 0x2000), .init at [0x2000, 0x2100), .data at [0x3000, 0x4000).
class Image {
 public:
  explicit Image(const std::vector<Symbol>& symbols) {
    ElfBuilder b(true, false);
    Bytes names = Bytes().text("");
    std::vector<BuiltSymbol> table;
    for (const Symbol& s : symbols) {
      const auto name = static_cast<std::uint32_t>(names.size());
      table.push_back({*s.name ? name : 0, s.value, s.size, s.type, s.binding, s.section});
      names.text(s.name);
    }
    b.sections = {{".text", SHT_NOBITS, {}, 0x1000, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x1000},
                  {".init", SHT_NOBITS, {}, 0x2000, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x100},
                  {".data", SHT_NOBITS, {}, 0x3000, SHF_ALLOC | SHF_WRITE, 0, 0, 16, 0x1000},
                  {".symtab", SHT_SYMTAB, b.symbols(table), 0, 0, 5, sizeof(Elf64_Sym)},
                  {".strtab", SHT_STRTAB, names.vector()}};
    file_ = b.build();
    image_ = *ElfImage::parse(file_);
  }

  SymbolTable table() const { return {&*image_, image_->symbols(SHT_SYMTAB)}; }

 private:
  RawBytes file_;
  std::optional<ElfImage> image_;
};

std::string text_of(const std::optional<FoundSymbol>& found) { return found ? std::string(found->name) : "-"; }

/// Finds the name in both ways, which must agree.
std::string name_of(std::span<const SymbolTable> tables, Addr at, NameReach reach = NameReach::own) {
  const auto plain = find_symbol(tables, at, reach);
  const auto index = SymbolIndex::make(tables);
  EXPECT_TRUE(index);
  const auto indexed = index->find(at, reach);
  EXPECT_EQ(text_of(plain), text_of(indexed)) << std::hex << at;
  if (plain && indexed) {
    EXPECT_EQ(plain->start, indexed->start);
  }
  return text_of(plain);
}

std::string name_of(const std::vector<Symbol>& symbols, Addr at, NameReach reach = NameReach::own) {
  const Image image(symbols);
  const SymbolTable table = image.table();
  return name_of(std::span(&table, 1), at, reach);
}

TEST(SymbolRule, AFunctionNamesItsBytesAndNoOthers) {
  const std::vector<Symbol> symbols{{"f", 0x1010, 0x10}, {"g", 0x1030, 0x10}};
  EXPECT_EQ(name_of(symbols, 0x100f), "-");
  EXPECT_EQ(name_of(symbols, 0x1010), "f");
  EXPECT_EQ(name_of(symbols, 0x101f), "f");
  EXPECT_EQ(name_of(symbols, 0x1020), "-");
  EXPECT_EQ(name_of(symbols, 0x1030), "g");
  EXPECT_EQ(name_of(symbols, ~Addr{0}), "-");
}

TEST(SymbolRule, AskedForTheNextOneReachesBehindItsEnd) {
  const std::vector<Symbol> symbols{{"f", 0x1010, 0x10}, {"g", 0x1030, 0x10}, {"h", 0x2000, 0x10}};
  EXPECT_EQ(name_of(symbols, 0x100f, NameReach::next), "-");
  EXPECT_EQ(name_of(symbols, 0x1010, NameReach::next), "f");
  EXPECT_EQ(name_of(symbols, 0x102f, NameReach::next), "f");
  EXPECT_EQ(name_of(symbols, 0x1fff, NameReach::next), "g");
  EXPECT_EQ(name_of(symbols, 0x20ff, NameReach::next), "-") << "another section";
}

TEST(SymbolRule, TheInnermostOfNestedOnesNames) {
  const std::vector<Symbol> symbols{{"outer", 0x1000, 0x100}, {"inner", 0x1040, 0x10}};
  EXPECT_EQ(name_of(symbols, 0x103f), "outer");
  EXPECT_EQ(name_of(symbols, 0x1040), "inner");
  EXPECT_EQ(name_of(symbols, 0x1050), "outer");
  EXPECT_EQ(name_of(symbols, 0x1100), "-");
}

TEST(SymbolRule, ALabelReachesToTheNextSymbolOrTheEndOfItsSection) {
  const std::vector<Symbol> symbols{
      {"_start", 0x1000, 0, STT_NOTYPE}, {"f", 0x1800, 0x10}, {"_init", 0x2000, 0, STT_FUNC, STB_GLOBAL, 2}};
  EXPECT_EQ(name_of(symbols, 0x17ff), "_start");
  EXPECT_EQ(name_of(symbols, 0x1fff), "-");
  EXPECT_EQ(name_of(symbols, 0x20ff), "_init");
  EXPECT_EQ(name_of(symbols, 0x2100), "-");
}

TEST(SymbolRule, ACoveringFunctionBeatsALabelInIt) {
  const std::vector<Symbol> symbols{{"f", 0x1000, 0x40}, {"loop", 0x1010, 0, STT_NOTYPE, STB_LOCAL}};
  EXPECT_EQ(name_of(symbols, 0x1020), "f");
}

TEST(SymbolRule, ALabelInAFunctionEndsWithIt) {
  const std::vector<Symbol> symbols{{"f", 0x1000, 0x40},
                                    {"loop", 0x1010, 0, STT_NOTYPE, STB_LOCAL},
                                    {"outer", 0x1100, 0x80},
                                    {"inner", 0x1110, 0x10},
                                    {"label", 0x1130, 0, STT_NOTYPE, STB_LOCAL},
                                    {"behind", 0x1180, 0, STT_NOTYPE, STB_LOCAL}};
  EXPECT_EQ(name_of(symbols, 0x1040), "-");
  EXPECT_EQ(name_of(symbols, 0x1040, NameReach::next), "loop");
  EXPECT_EQ(name_of(symbols, 0x1130), "outer");
  EXPECT_EQ(name_of(symbols, 0x1190), "behind");
}

TEST(SymbolRule, AliasesAreChosenByKindThenBindingThenOrder) {
  EXPECT_EQ(name_of({{"untyped", 0x1000, 8, STT_NOTYPE}, {"function", 0x1000, 8, STT_FUNC, STB_LOCAL}}, 0x1000),
            "function");
  EXPECT_EQ(name_of({{"local", 0x1000, 8, STT_FUNC, STB_LOCAL}, {"weak", 0x1000, 8, STT_FUNC, STB_WEAK}}, 0x1000),
            "weak");
  EXPECT_EQ(name_of({{"weak", 0x1000, 8, STT_FUNC, STB_WEAK}, {"global", 0x1000, 8}}, 0x1000), "global");
  EXPECT_EQ(name_of({{"first", 0x1000, 8}, {"second", 0x1000, 8}}, 0x1000), "first");
  EXPECT_EQ(name_of({{"large", 0x1000, 0x80}, {"small", 0x1000, 8}}, 0x1004), "small");
  EXPECT_EQ(name_of({{"large", 0x1000, 0x80}, {"small", 0x1000, 8}}, 0x1008), "large");
  EXPECT_EQ(name_of({{"ifunc", 0x1000, 8, STT_GNU_IFUNC}, {"untyped", 0x1000, 8, STT_NOTYPE}}, 0x1000), "ifunc");
  // A sized alias tells the label's end.
  EXPECT_EQ(name_of({{"label", 0x1000, 0}, {"sized", 0x1000, 8}}, 0x1010), "-");
}

TEST(SymbolRule, WhatNamesNoCodeIsNotEligible) {
  for (const Symbol& s :
       {Symbol{"object", 0x1000, 8, STT_OBJECT}, Symbol{"section", 0x1000, 8, STT_SECTION},
        Symbol{"file", 0x1000, 8, STT_FILE}, Symbol{"tls", 0x1000, 8, STT_TLS},
        Symbol{"undefined", 0x1000, 8, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
        Symbol{"absolute", 0x1000, 8, STT_FUNC, STB_GLOBAL, SHN_ABS}, Symbol{"", 0x1000, 8},
        Symbol{"$x", 0x1000, 0, STT_NOTYPE, STB_LOCAL}, Symbol{"$d.realdata", 0x1000, 0, STT_NOTYPE, STB_LOCAL}})
    EXPECT_EQ(name_of({s}, 0x1000), "-") << s.name;
  EXPECT_EQ(name_of({{"untyped data", 0x3000, 8, STT_NOTYPE, STB_GLOBAL, 3}}, 0x3000), "-");
  EXPECT_EQ(name_of({{"$money", 0x1000, 8}}, 0x1000), "$money");
  EXPECT_EQ(name_of({{"$xy", 0x1000, 0, STT_NOTYPE}}, 0x1000), "$xy");
}

TEST(SymbolRule, VersionsAreNoPartOfTheName) {
  EXPECT_EQ(name_of({{"open@GLIBC_2.2.5", 0x1000, 8}}, 0x1000), "open");
  EXPECT_EQ(name_of({{"open@@GLIBC_2.34", 0x1000, 8}}, 0x1000), "open");
  EXPECT_EQ(name_of({{"@odd", 0x1000, 8}}, 0x1000), "@odd");
}

TEST(SymbolRule, SizesThatWrapAroundReachToTheEnd) {
  EXPECT_EQ(name_of({{"huge", 0x1000, ~0ull}, {"f", 0x1100, 0x10}}, 0x1110), "huge");
  EXPECT_EQ(name_of({{"huge", 0x1000, ~0ull}, {"f", 0x1100, 0x10}}, ~Addr{0} - 1), "huge");
}

TEST(SymbolRule, TablesAreOne) {
  const Image hidden({{"hidden", 0x1000, 0x10}, {"both, hidden", 0x1040, 8}});
  const Image exported({{"exported", 0x1010, 0x10}, {"both, exported", 0x1040, 8}});
  const SymbolTable tables[] = {hidden.table(), exported.table()};
  EXPECT_EQ(name_of(tables, 0x100f), "hidden");
  EXPECT_EQ(name_of(tables, 0x1010), "exported");
  EXPECT_EQ(name_of(tables, 0x1040), "both, hidden");
  const SymbolTable nothing[] = {SymbolTable{}, SymbolTable{}};
  EXPECT_EQ(name_of(nothing, 0x1000), "-");
}

// Compares the index with the plain search on every address of crowded random tables.
TEST(SymbolRule, HoldsInTheIndexForRandomTables) {
  std::mt19937 random(99);
  static std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("s" + std::to_string(i));
  std::size_t named = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Symbol> symbols;
    symbols.reserve(names.size());
    const std::size_t count = random() % names.size();
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned types[] = {STT_FUNC, STT_FUNC, STT_NOTYPE, STT_GNU_IFUNC, STT_OBJECT};
      const auto section = static_cast<unsigned>(1 + random() % 2);
      const auto binding = static_cast<unsigned>(random() % 3);
      const Addr value = (section == 1 ? 0x1f80 : 0x2000) + random() % 0x80;
      const std::uint64_t size = random() % 3 == 0 ? 0 : random() % (random() % 8 == 0 ? 0x200 : 0x20);
      symbols.push_back({names[i].c_str(), value, size, types[random() % 5], binding, section});
    }
    const Image image(symbols);
    const SymbolTable table = image.table();
    const auto index = SymbolIndex::make(std::span(&table, 1));
    ASSERT_TRUE(index);
    for (Addr at = 0x1f70; at < 0x2200; ++at) {
      const auto plain = find_symbol(std::span(&table, 1), at);
      const auto indexed = index->find(at);
      ASSERT_EQ(text_of(plain), text_of(indexed)) << round << " " << std::hex << at;
      named += plain.has_value();
    }
  }
  EXPECT_GT(named, 10000u);
}

}  // namespace
}  // namespace jitunwind::test

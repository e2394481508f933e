// The names of the test program's own functions, in every kind of program, compared with readelf.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "tests/image/local_names.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

struct Symbol {
  Addr start;
  Addr size;
  std::string name;
};

/// Functions of the program's file that have a size, as readelf prints them: number, value, size (decimal, or hex from
/// 100000 on), type, binding, visibility, section, name.
std::vector<Symbol> functions_by_readelf() {
  std::vector<Symbol> result;
  for (const std::string& line : lines_of(output_of("readelf -sW /proc/" + std::to_string(::getpid()) + "/exe"))) {
    std::istringstream in(line);
    Symbol s{};
    std::string number, size, type, binding, visibility, section;
    in >> number >> std::hex >> s.start >> size >> type >> binding >> visibility >> section >> s.name;
    if (!in || (type != "FUNC" && type != "IFUNC") || section == "UND") continue;
    s.size = std::stoull(size, nullptr, 0);
    s.name = s.name.substr(0, s.name.find('@'));
    if (s.size != 0) result.push_back(s);
  }
  return result;
}

Addr program_bias() {
  Module module;
  EXPECT_TRUE(local_modules().find(addr_of(reinterpret_cast<void*>(&functions_by_readelf)), module));
  return module.load_bias;
}

// covers: PI09
TEST(OwnNames, AreThoseOfReadelf) {
  const auto functions = functions_by_readelf();
  ASSERT_GT(functions.size(), 500u);
  const Addr bias = program_bias();
  std::multimap<Addr, const Symbol*> by_start;
  for (const Symbol& s : functions) by_start.emplace(s.start, &s);
  Addr largest = 0;
  for (const Symbol& s : functions) largest = std::max(largest, s.size);

  std::size_t asked = 0;
  for (const Symbol& s : functions)
    for (const Addr at : {s.start, s.start + s.size / 2, s.start + s.size - 1}) {
      // Returns the innermost symbol that covers the address, with all of its aliases.
      Addr start = 0;
      std::set<std::string> names;
      for (auto it = by_start.upper_bound(at); it != by_start.begin() && names.empty();) {
        --it;
        start = it->first;
        if (at - start >= largest) break;
        for (auto [alias, end] = by_start.equal_range(start); alias != end; ++alias)
          if (at - start < alias->second->size) names.insert(alias->second->name);
      }
      ASSERT_FALSE(names.empty());
      const auto found = local_name(at + bias);
      ASSERT_TRUE(found) << s.name;
      EXPECT_EQ(found->start, start + bias) << s.name << " is called " << found->text;
      EXPECT_TRUE(names.contains(found->text)) << s.name << " is called " << found->text;
      ++asked;
    }
  RecordProperty("addresses", static_cast<int>(asked));
}

// Two functions without a byte between them.
asm(R"(
  .text
  .type jitunwind_test_calls_last, @function
jitunwind_test_calls_last:
  nop
  nop
  .size jitunwind_test_calls_last, . - jitunwind_test_calls_last
  .globl jitunwind_test_named_function
  .type jitunwind_test_named_function, @function
jitunwind_test_named_function:
  nop
  ret
  .size jitunwind_test_named_function, . - jitunwind_test_named_function
)");
extern "C" void jitunwind_test_named_function();

// covers: PI11
TEST(OwnNames, OfReturnAddressesAreLookedUpOneByteBefore) {
  const Addr begin = addr_of(reinterpret_cast<void*>(&jitunwind_test_named_function));
  const auto name_of = [](CodeAddress at) { return local_name(at).value_or(LocalName{}).text; };
  EXPECT_EQ(name_of(CodeAddress::interrupted(begin)), "jitunwind_test_named_function");
  EXPECT_EQ(name_of(CodeAddress::returned_to(begin + 1)), "jitunwind_test_named_function");
  EXPECT_EQ(name_of(CodeAddress::returned_to(begin)), "jitunwind_test_calls_last");
}

TEST(OwnNames, AreCutToTheBuffer) {
  const CodeAddress at = CodeAddress::interrupted(addr_of(reinterpret_cast<void*>(&jitunwind_test_named_function)));
  const std::string name = "jitunwind_test_named_function";
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, name.size(), name.size() + 1, name.size() + 2}) {
    const auto found = local_name(at, size);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->text, name.substr(0, size - 1));
    EXPECT_EQ(found->length, name.size());
    EXPECT_EQ(found->truncated, size <= name.size()) << size;
    EXPECT_EQ(found->start, at.value());
  }
}

TEST(OwnNames, DataAndStackHaveNone) {
  static int data = 0;
  const int on_stack = 0;
  for (const void* p :
       {static_cast<const void*>(&data), static_cast<const void*>(&on_stack), static_cast<const void*>(nullptr)})
    EXPECT_FALSE(local_name(addr_of(p))) << p;
}

}  // namespace
}  // namespace jitunwind::test

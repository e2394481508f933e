// The names that programs link with: those that the headers make, and those of the shared library.
#include <libunwind.h>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/command.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define CPU TEXT(UNW_TARGET)

extern "C" const char* const jitunwind_test_local_only_names[2];

namespace jitunwind::test {
namespace {

/// Name -> address.
std::map<std::string, std::string> exported() {
  std::map<std::string, std::string> names;
  for (const std::string& line : lines_of(output_of("nm -D --defined-only --format=posix '" LIBUNWIND_SHARED "'"))) {
    std::istringstream in(line);
    std::string name, type, address;
    if (in >> name >> type >> address) names[name.substr(0, name.find('@'))] = address;
  }
  return names;
}

/// Returns the names that a header maps by a macro: UNW_OBJ, of which there are two, or UNW_ARCH_OBJ.
std::vector<std::string> mapped_by(const char* macro) {
  std::vector<std::string> names;
  const Pattern mapped("#define unw_\\w+ " + std::string(macro) + "\\((\\w+)\\)");
  for (const char* header : {"/sdk/compat/include/libunwind-common.h", "/sdk/compat/include/libunwind-" CPU ".h"}) {
    for (const std::string& line : lines_of(text_of_file(std::string(JITUNWIND_SOURCE_DIR) + header)))
      if (Groups found; matches(line, found, mapped)) names.push_back(found[1]);
  }
  return names;
}

/// The two names of a function have one address, so that programs with UNW_LOCAL_ONLY walk as fast as others do.
// covers: LU17 LU28
TEST(InterfaceNames, AreThoseOfTheHeaders) {
  const auto names = exported();
  const auto of_both = mapped_by("UNW_OBJ"), of_one = mapped_by("UNW_ARCH_OBJ");
  EXPECT_GE(of_both.size(), 28u);
  EXPECT_GE(of_one.size(), 6u);
  for (const std::string& name : of_both) {
    ASSERT_TRUE(names.contains("_U" CPU "_" + name)) << name;
    ASSERT_TRUE(names.contains("_UL" CPU "_" + name)) << name;
    EXPECT_EQ(names.at("_U" CPU "_" + name), names.at("_UL" CPU "_" + name)) << name;
  }
  for (const std::string& name : of_one) EXPECT_TRUE(names.contains("_U" CPU "_" + name)) << name;
  for (const char* name : {"unw_backtrace", "unw_backtrace2", "_U_dyn_register", "_U_dyn_cancel",
                           "_U_dyn_info_list_addr", "_U_dyn_region_size"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// covers: LU16 LU17
TEST(InterfaceNames, AreChosenByTranslationUnit) {
  EXPECT_STREQ(TEXT(unw_step), "_U" CPU "_step");
  EXPECT_STREQ(TEXT(unw_flush_cache), "_U" CPU "_flush_cache");
  EXPECT_STREQ(jitunwind_test_local_only_names[0], "_UL" CPU "_step");
  EXPECT_STREQ(jitunwind_test_local_only_names[1], "_U" CPU "_flush_cache");
}

}  // namespace
}  // namespace jitunwind::test

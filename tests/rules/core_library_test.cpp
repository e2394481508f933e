// The tests read by nm and readelf what libjitunwind-core needs, and ask the kernel what its start takes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::lines_of, jitunwind::test::output_of, jitunwind::test::Pattern;

/// Lines of nm "type name" whose type is one of `types`.
std::vector<std::string> names(const std::string& options, const std::string& types) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(output_of("nm " + options))) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (all.size() >= 2 && types.find(all[all.size() - 2]) != std::string::npos) found.push_back(all.back());
  }
  return found;
}

#ifndef JITUNWIND_TEST_SANITIZED
TEST(CoreLibrary, NeedsTheCLibraryAlone) {
  const std::string dynamic = output_of("readelf -dW '" JITUNWIND_CORE_SHARED "'");
  const Pattern needed(R"(NEEDED.*\[(.*)\])"), c_library(R"(libc\.so\.6|ld-linux.*|libpthread\.so\.0|libdl\.so\.2)");
  std::size_t count = 0;
  for (const Groups& at : all_in(dynamic, needed)) {
    ++count;
    EXPECT_TRUE(matches(at[1], c_library)) << at[1];
  }
  EXPECT_GE(count, 1u);
  const Pattern of_c(R"(\w+@GLIBC_\S+)");
  for (const std::string& name : names("-D -u '" JITUNWIND_CORE_SHARED "'", "U"))
    EXPECT_TRUE(matches(name, of_c)) << name;
}

TEST(CoreLibrary, AssertsNothingByTheRuntimeLibraryOfCpp) {
  const std::string needed = output_of("nm -u '" JITUNWIND_ASSERTING_CORE_OBJECT "'");
  EXPECT_NE(needed.find("jitunwind"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("assert"), std::string::npos) << needed;
}

/// A program without them is whole: they are compared with null, or only data refers to them.
TEST(CoreLibrary, WeakReferencesAreKnown) {
  const Pattern known(
      R"(_ITM_\w+TMCloneTable|__gmon_start__|_r_debug|__real__Unwind_Find_FDE|__lsan_ignore_object|)"
      R"(__asan_\w+|_dl_find_object|_DYNAMIC|_Unwind_FindEnclosingFunction|)"
      R"(__cxa_pure_virtual|)"
      R"(jitunwind_functions_above|_ZN9jitunwind\d+(every_arch|decompress_(xz|zlib|zstd)|start_telling)E.*)");
  const Pattern of_c(R"(\w+@GLIBC_\S+)");
  const std::vector<std::string> weak = names("-D -u '" JITUNWIND_CORE_SHARED "'", "wv");
  EXPECT_GT(weak.size(), 8u);
  for (const std::string& name : weak) EXPECT_TRUE(matches(name, known) || matches(name, of_c)) << name;
}

TEST(CoreLibrary, HasNoTypeInformation) {
  const auto of_types = [](const std::string& options) {
    std::vector<std::string> found = names(options, "BbDdGgRrSsUuVvw");
    std::erase_if(found, [](const std::string& name) { return !matches(name, Pattern("_ZT[IS].*|.*__cxxabiv1.*")); });
    return found;
  };
  EXPECT_EQ(rules::joined(of_types("'" JITUNWIND_CORE_SHARED "'")), "");
  EXPECT_EQ(rules::joined(of_types("'" JITUNWIND_CORE_STATIC "'")), "");
  EXPECT_NE(of_types("-D '" JITUNWIND_SHARED "'").size(), 0u);
}

/// libjitunwind has the rest on top of the core. Weak names are those of functions that the unwinder asks, and of
/// tables of virtual functions.
TEST(CoreLibrary, LibraryOnItDefinesNothingTwice) {
  const std::vector<std::string> of_library = names("-D --defined-only '" JITUNWIND_SHARED "'", "TDBRi");
  const std::set<std::string> above(of_library.begin(), of_library.end());
  EXPECT_GT(above.size(), 300u);
  for (const std::string& name : names("-D --defined-only '" JITUNWIND_CORE_SHARED "'", "TDBRi"))
    EXPECT_EQ(above.count(name), 0u) << name;
}

/// Objects of the archive refer to each other, and to nothing of the C++ run-time library or of an unwinder.
TEST(CoreLibrary, ArchiveNeedsNoRunTimeLibrary) {
  const std::vector<std::string> defined = names("--defined-only '" JITUNWIND_CORE_STATIC "'", "TtDdBbRrVWu");
  const std::set<std::string> own(defined.begin(), defined.end());
  EXPECT_GT(own.size(), 500u);
  const Pattern foreign(R"(_Z\w+|__cxa_\w+|__gxx_\w+|_Unwind_\w+|__dynamic_cast)");
  for (const std::string& name : names("-u '" JITUNWIND_CORE_STATIC "'", "U"))
    EXPECT_FALSE(own.count(name) == 0 && matches(name, foreign)) << name;
}

unsigned long size_of(const std::string& sections, const std::string& name) {
  Groups match;
  const Pattern line(" \\" + name + R"( +\w+ +\w+ \w+ (\w+) )");
  return has_match(sections, match, line) ? std::stoul(match[1], nullptr, 16) : 0;
}

#ifdef JITUNWIND_TEST_OPTIMISED
TEST(CoreLibrary, IsSmall) {
  const std::string sections = output_of("readelf -SW '" JITUNWIND_CORE_SHARED "'");
  const unsigned long code = size_of(sections, ".text");
  const unsigned long zeros = size_of(sections, ".bss") + size_of(sections, ".bss.large");
  const unsigned long data = size_of(sections, ".data") + size_of(sections, ".data.large");
  std::printf("%lu bytes of code, %lu of zeros\n%s", code, zeros,
              output_of("size '" JITUNWIND_CORE_SHARED "'").c_str());
  EXPECT_GT(code, 100'000u);
  // The target is 307'200 (docs/notes/start.md), which gcc 16 misses. The other bounds of gcc are narrower, so that
  // growth is noticed.
#ifdef __clang__
  EXPECT_LT(code, 330'000u);
#else
  EXPECT_LT(code, __GNUC__ > 14 ? 314'000u : __GNUC__ > 12 ? 305'000u : 300'000u);
#endif
  EXPECT_GT(zeros, 0u);
  EXPECT_LT(zeros, 191'000u);
  EXPECT_LT(data, 30'000u);
}

/// Page faults of a program that does nothing, the mean of some runs: where the kernel places a library decides how
/// many blocks of 64 KiB its parts touch, and the least of all runs is a matter of luck.
double faults_of(const char* preloaded) {
  constexpr int k_runs = 200;
  // A child that writes to memory before it executes the program has page faults of its own.
  const std::string preload = std::string("LD_PRELOAD=") + preloaded;
  const std::array<const char*, 2> environment{*preloaded ? preload.c_str() : nullptr, nullptr};
  const std::array<const char*, 2> command{"/bin/true", nullptr};
  long all = 0;
  for (int i = 0; i < k_runs; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execve(command[0], const_cast<char**>(command.data()), const_cast<char**>(environment.data()));
      ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    if (::wait4(child, &status, 0, &usage) != child || status != 0) return -1;
    all += usage.ru_minflt;
  }
  return static_cast<double>(all) / k_runs;
}

TEST(CoreLibrary, StartTakesFewPages) {
  const double without = faults_of(""), with = faults_of(JITUNWIND_CORE_SHARED);
  ASSERT_GT(without, 0);
  std::printf("%.1f page faults, %.1f with the core\n", without, with);
  EXPECT_GT(with, without);
  EXPECT_LE(with - without, 15);
}

/// A C++ run-time library would be some 60 more.
TEST(CoreLibrary, LibrariesThatArePreloadedTakeFewPages) {
  const double without = faults_of(""), listening = faults_of(JITUNWIND_LISTEN_SHARED),
               drop_in = faults_of(JITUNWIND_DROP_IN_SHARED);
  ASSERT_GT(without, 0);
  std::printf("%.1f page faults, %.1f with libjitunwind-listen, %.1f with libunwind.so.8\n", without, listening,
              drop_in);
  EXPECT_GT(listening, without);
  EXPECT_LE(listening - without, __GNUC__ > 14 ? 45 : 43);
  EXPECT_LE(drop_in - without, 57);
}
#endif
#endif

}  // namespace

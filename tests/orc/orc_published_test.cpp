// Code of an LLJIT in code segments.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/code_segments/symbols_of.h"
#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

class OrcPublished : public EachLinker {};
JITUNWIND_EACH_LINKER(OrcPublished);

long identity(long x) { return x; }
Addr address_of(Calls function) { return reinterpret_cast<std::uintptr_t>(function); }

/// The begin of the function that libgcc_s finds at the return address of a call.
Addr g_found = 0;
long finds_caller(long x) {
  g_found = LibgccSearch()(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1);
  return x;
}

/// Local functions have their names, too. Code that is removed is gone, and gives its room to the next.
TEST_P(OrcPublished, AsLongAsItIsInMemory) {
  CodeSegments segments;
  OrcJit jit(GetParam(), {.segments = &segments});
  Addr first = 0;
  for (int i = 0; i < 3; ++i) {
    const auto tracker = jit.add(numbered(k_local_functions, i));
    const auto outer = jit.find<Calls>("outer_" + std::to_string(i));
    EXPECT_EQ(outer(finds_caller, 1), 3);
    EXPECT_EQ(segments.status().published, 2u);
    EXPECT_EQ(symbol_at(address_of(outer) + 1), "outer_" + std::to_string(i));
    ASSERT_NE(g_found, 0u);
    EXPECT_EQ(symbol_at(g_found), "middle_" + std::to_string(i));
    EXPECT_EQ(LibgccSearch()(address_of(outer) + 1), address_of(outer));
    EXPECT_EQ(llvm::toString(tracker->remove()), "");
    EXPECT_EQ(segments.status().published, 0u);
    EXPECT_EQ(symbol_at(address_of(outer)), nullptr);
    EXPECT_TRUE(first == 0 || first == address_of(outer));
    first = address_of(outer);
  }
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

/// A link that fails after its memory was allocated gives the room back.
TEST_P(OrcPublished, LinksThatFail) {
  CodeSegments segments;
  OrcJit jit(GetParam(), {.segments = &segments});
  for (int i = 0; i < 2; ++i) {
    jit.add(
        numbered("declare i64 @nowhere(i64)\n"
                 "define i64 @outer(i64 %x) {\n%r = call i64 @nowhere(i64 %x)\nret i64 %r\n}",
                 i));
    EXPECT_NE(jit.failure_of("outer_" + std::to_string(i)), "");
  }
  jit.add(k_local_functions);
  EXPECT_EQ(jit.find<Calls>("outer")(identity, 1), 3);
  EXPECT_EQ(segments.status().published, 2u);
}

TEST_P(OrcPublished, InChildren) {
  CodeSegments segments;
  OrcJit jit(GetParam(), {.segments = &segments});
  const auto tracker = jit.add(k_local_functions);
  const auto outer = jit.find<Calls>("outer");
  const pid_t child = ::fork();
  if (child == 0) {
    if (outer(identity, 1) != 3 || symbol_at(address_of(outer)) != std::string("outer")) ::_exit(1);
    jit.add(numbered(k_local_functions, 1));
    const auto own = jit.find<Calls>("outer_1");
    if (own(identity, 1) != 3 || symbol_at(address_of(own)) != std::string("outer_1")) ::_exit(2);
    ::_exit(llvm::toString(tracker->remove()).empty() && registered() == 2 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_STREQ(symbol_at(address_of(outer)), "outer");
}

TEST(OrcPublishedOnce, ByTwoPlugins) {
  CodeSegments segments;
  OrcJit jit(Linker::jitlink, {.segments = &segments});
  or_exit(attach(jit.jit(), {.segments = &segments}));
  jit.add(k_local_functions);
  EXPECT_EQ(jit.find<Calls>("outer")(identity, 1), 3);
  EXPECT_EQ(segments.status().published, 2u);
  EXPECT_EQ(registered(), 2u);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int k_published_modules = 5;  // LLVM compiles ten times as long beside them
#else
constexpr int k_published_modules = 50;
#endif

TEST(OrcPublishedOnce, ManyFunctions) {
  constexpr int k_functions = 200;
  CodeSegments segments;
  OrcJit jit(Linker::jitlink, {.segments = &segments});
  const auto name = [](int module, int function) {
    return "f_" + std::to_string(module) + "_" + std::to_string(function);
  };
  for (int m = 0; m < k_published_modules; ++m) {
    std::string assembly;
    for (int f = 0; f < k_functions; ++f)
      assembly += "define i64 @" + name(m, f) + "(i64 %x) uwtable {\nret i64 %x\n}\n";
    jit.add(assembly);
    jit.find<Native>(name(m, 0));
  }
  EXPECT_EQ(segments.status().published, std::size_t{k_published_modules * k_functions});
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
  for (int m = 0; m < k_published_modules; ++m) {
    for (int f = 0; f < k_functions; ++f) {
      const auto start = reinterpret_cast<std::uintptr_t>(jit.find<Native>(name(m, f)));
      ASSERT_EQ(symbol_at(start + 1), name(m, f));
      ASSERT_EQ(LibgccSearch()(start + 1), start);
    }
  }
}

}  // namespace
}  // namespace jitunwind::test

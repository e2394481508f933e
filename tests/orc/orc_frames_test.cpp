// Walks, names and exceptions through code that an LLJIT has linked, by JITLink and by RuntimeDyld.
#include <gtest/gtest.h>

#include <jitunwind/jitunwind.h>
#include <jitunwind/system_unwinder.h>

#include <stdexcept>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

class OrcFrames : public EachLinker {};
JITUNWIND_EACH_LINKER(OrcFrames);

std::vector<std::string> g_names;
std::vector<RowOrigin> g_origins;

long walks(long x) {
  g_names.clear();
  g_origins.clear();
  for (const Frame& frame : walk_here()) {
    g_names.push_back(frame.name());
    g_origins.push_back(frame.origin());
    if (g_names.back() == "outer") break;
  }
  return x + 1;
}

// covers: DY46
TEST_P(OrcFrames, LocalFunctionsAreWalkedAndNamed) {
  OrcJit jit(GetParam());
  jit.add(k_local_functions);
  EXPECT_EQ(jit.find<Calls>("outer")(walks, 1), 4);
  ASSERT_GE(g_names.size(), 3u);
  EXPECT_EQ(g_names[g_names.size() - 2], "middle");
  EXPECT_EQ(g_names.back(), "outer");
  EXPECT_EQ(g_origins.back(), RowOrigin::dyn_table);
}

struct Counted {
  ~Counted() { ++count; }
  static inline int count = 0;
};

long throws_with_destructor(long x) {
  const Counted counted;
  return throws(x);
}

// covers: DY46 EX14
TEST_P(OrcFrames, ExceptionsPass) {
  OrcJit jit(GetParam());
  jit.add(k_local_functions);
  const auto outer = jit.find<Calls>("outer");
  for (int round = 0; round < 3; ++round) {
    Counted::count = 0;
    EXPECT_THROW(outer(throws_with_destructor, 1), std::runtime_error);
    EXPECT_EQ(Counted::count, 1);
  }
}

int g_undone = 0;
long throws_or_undoes(long x) {
  if (x < 0) ++g_undone;
  return throws(x);
}

TEST_P(OrcFrames, ExceptionsLandInLandingPadsOfTheObject) {
  OrcJit jit(GetParam());
  jit.add(k_landing_pads);
  EXPECT_EQ(jit.find<Calls>("catches")(throws, 1), -1);
  EXPECT_EQ(jit.find<Calls>("catches")(throws, 0), 0);
  g_undone = 0;
  EXPECT_THROW(jit.find<Calls>("cleans")(throws_or_undoes, 1), std::runtime_error);
  EXPECT_EQ(g_undone, 1);
}

}  // namespace
}  // namespace jitunwind::test

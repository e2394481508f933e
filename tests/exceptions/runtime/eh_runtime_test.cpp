// The exception runtime beside libgcc's: the same programs, linked with one and with the other.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace {

using jitunwind::test::Ended, jitunwind::test::lines_of, jitunwind::test::output_of, jitunwind::test::Pattern,
    jitunwind::test::run;

/// These tests' programs print from signal handlers, while nothing else runs.
[[maybe_unused]] const int g_handlers_may_print = ::setenv("TSAN_OPTIONS", "report_signal_unsafe=0", 0);

std::string runtime_of(const std::string& program) { return output_of(program + " --runtime"); }

TEST(LevelOne, EachProgramHasItsRuntime) {
  EXPECT_NE(runtime_of(LEVEL_ONE_LIBGCC).find("libgcc_s.so.1"), std::string::npos);
  EXPECT_NE(runtime_of(LEVEL_ONE_OWN).find("libjitunwind-eh"), std::string::npos);
}

class LikeLibgcc : public testing::TestWithParam<const char*> {};

/// Compares every call of a personality routine, a stop function or a callback, with everything that it can query.
// covers: EX01 EX02 EX03 EX04 EX05 EX06 EX08 EX09 EX10 EX11 EX15
TEST_P(LikeLibgcc, SeesTheSame) {
  const std::string scenario = std::string(" ") + GetParam();
  const std::string expected = output_of(LEVEL_ONE_LIBGCC + scenario + " 2>/dev/null");
  EXPECT_GT(expected.size(), 10u);
  EXPECT_EQ(output_of(LEVEL_ONE_OWN + scenario + " 2>/dev/null"), expected);
}

constexpr const char* k_scenarios[] = {"caught",
                                       "caught_behind_cleanups",
                                       "caught_at_once",
                                       "caught_behind_many_states",
                                       "caught_in_one_of_many",
                                       "not_caught",
                                       "nonsense_in_search",
                                       "nonsense_in_cleanup",
                                       "forced",
                                       "forced_to_the_end",
                                       "forced_stops",
                                       "forced_nonsense",
                                       "rethrown",
                                       "rethrown_uncaught",
                                       "rethrown_forced",
                                       "deleted",
                                       "traced",
                                       "traced_in_part",
                                       "traced_through_a_signal",
                                       "enclosing"};
INSTANTIATE_TEST_SUITE_P(LevelOne, LikeLibgcc, testing::ValuesIn(k_scenarios),
                         [](const auto& scenario) { return std::string(scenario.param); });

TEST(LevelOne, EveryScenarioIsCompared) {
  EXPECT_EQ(lines_of(output_of(LEVEL_ONE_OWN)),
            std::vector<std::string>(std::begin(k_scenarios), std::end(k_scenarios)));
}

/// Returns names such as "_Unwind_Resume@@GCC_3.0".
std::set<std::string> level_one_names(const std::string& library) {
  std::set<std::string> names;
  std::istringstream words(output_of("readelf -W --dyn-syms '" + library + "' | grep -v UND"));
  for (std::string word; words >> word;)
    if (word.rfind("_Unwind_", 0) == 0 && word.rfind("_Unwind_Find_FDE", 0) != 0) names.insert(word);
  return names;
}

// covers: EX13
TEST(LevelOne, NamesAndVersionsAreLibgccs) {
  const auto libgccs = level_one_names(LIBGCC);
  EXPECT_GE(libgccs.size(), 17u);
  EXPECT_EQ(level_one_names(EH_SHARED), libgccs);
  const std::string others = output_of("readelf -W --dyn-syms '" + std::string(EH_SHARED) + "'");
  for (const std::string& name : libgccs)
    EXPECT_NE(others.find("__libunwind" + name.substr(0, name.find('@'))), std::string::npos) << name;
  EXPECT_TRUE(level_one_names(LIBUNWIND_SHARED).empty()) << "libgcc_s stays the unwinder of who does not ask for ours";
  EXPECT_TRUE(level_one_names(JITUNWIND_SHARED).empty());
}

/// The thrower's words stay unchanged; only those behind them belong to the unwinder.
// covers: EX12
TEST(LevelOne, AnExceptionIsWhatTheAbiSays) {
  const std::string log = output_of(std::string(LEVEL_ONE_OWN) + " caught 2>/dev/null");
  EXPECT_NE(log.find("\nuntouched=1 class=1 cleanup=1 used=1\n"), std::string::npos) << log;
}

// covers: EX07
TEST(LevelOne, SpIsZeroBehindTheEndOfTheStack) {
  const Ended ended = run(std::string(FAILURES) + " sp_at_the_end");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "sp 0 at_end 1\n");
}

void expect_all_good(const std::string& command) {
  const Ended ended = run(command);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("0 failed"), std::string::npos) << ended.text;
  EXPECT_GT(lines_of(ended.text).size(), 25u);
}

// covers: DY06 EX01 EX03 EX04 EX05 EX06 EX10 EX16
TEST(CppPrograms, LinkedBeforeLibgcc) {
  EXPECT_NE(runtime_of(CPP_OWN).find("libjitunwind-eh"), std::string::npos);
  expect_all_good(CPP_OWN);
}

#ifdef CPP_STATIC
TEST(CppPrograms, LinkedWithTheArchive) {
  EXPECT_NE(runtime_of(CPP_STATIC).find("cpp_program_static"), std::string::npos);
  expect_all_good(CPP_STATIC);
}

TEST(CppPrograms, Preloaded) {
  const std::string command = "LD_PRELOAD='" + std::string(EH_SHARED) + "' " + CPP_STOCK;
  EXPECT_NE(output_of(command + " --runtime").find("libjitunwind-eh"), std::string::npos);
  EXPECT_NE(runtime_of(CPP_STOCK).find("libgcc_s"), std::string::npos);
  expect_all_good(command);
}
#endif

#ifdef HANDLERS_LIBGCC
/// Exceptions and jumps out of signal handlers, on small signal stacks and where the stack is exhausted, and out of the
/// runtime's callbacks. A throw takes no more of a signal stack of 8 KiB than libgcc's leaves there.
// covers: EX01
TEST(Handlers, AreLeftAsWithLibgcc) {
  const Ended expected = run(HANDLERS_LIBGCC);
  EXPECT_EQ(expected.status, 0);
  EXPECT_NE(expected.text.find("trace: jumped 3 times\n"), std::string::npos) << expected.text;
  for (const char* const program : {HANDLERS_OWN, HANDLERS_STATIC, HANDLERS_STATIC_PIE}) {
    const Ended own = run(std::string("timeout 60 ") + program);
    EXPECT_EQ(own.status, 0) << program;
    EXPECT_EQ(own.text, expected.text) << program;
  }
}
#endif

#ifdef CPP_LIBCXX
// Debian's libc++ loads LLVM's libunwind.so.1, libjitunwind and glibc load libgcc_s: ours is bound first.
TEST(CppPrograms, UnderLibcxx) {
  EXPECT_NE(runtime_of(CPP_LIBCXX).find("libjitunwind-eh"), std::string::npos);
  expect_all_good(CPP_LIBCXX);
}
#endif

/// libgcc defines __register_frame(), and only libgcc knows the frames that it is given.
// covers: EX01
TEST(FramesOfOthers, ArePassedAsByLibgcc) {
  const std::string expected = "caught thrown, destroyed 2\ncaught thrown, destroyed 4\ncaught thrown, destroyed 6\n";
  EXPECT_EQ(run(OTHERS_FRAMES_LIBGCC).text, expected);
  const Ended own = run(OTHERS_FRAMES_OWN);
  EXPECT_EQ(own.status, 0);
  EXPECT_EQ(own.text, expected);
}

/// A library's constructor waits for the threads that throw. The linker's lock is held then, so nothing may take it.
// covers: EX01
TEST(FramesOfOthers, ArePassedWhileALibraryIsLoaded) {
  const std::string expected =
      "caught thrown, destroyed 2\ncaught thrown, destroyed 4\ncaught thrown, destroyed 6\ncancelled 1, destroyed 7\n";
  const std::string plugin = std::string(" ") + OTHERS_FRAMES_PLUGIN;
  EXPECT_EQ(run(OTHERS_FRAMES_LIBGCC + plugin).text, expected);
  EXPECT_EQ(run(OTHERS_FRAMES_OWN + plugin).text, expected);
}

void expect_death(const std::string& scenario, const std::string& why) {
  const Ended ended = run(std::string(FAILURES) + " " + scenario);
  EXPECT_EQ(ended.status, 128 + SIGABRT) << ended.text;
  EXPECT_TRUE(has_match(ended.text, Pattern(why))) << ended.text;
  EXPECT_EQ(ended.text.find("caught\n"), std::string::npos);
}

/// Compilers may or may not inline the throwing function.
const std::string k_at_jit_frame = " at frame [23], pc 0x";

// covers: EX01
TEST(Failures, EndTheProgramAndNameTheFrame) {
  expect_death("cancelled", "jitunwind: no unwind information for an exception" + k_at_jit_frame);
  expect_death("nonsense_in_search", "jitunwind: personality routine returned what it must not" + k_at_jit_frame);
  expect_death("nonsense_in_search", "\\(jit_frame\\+0x12\\)");
  expect_death("nonsense_in_cleanup", "jitunwind: personality routine returned what it must not" + k_at_jit_frame);
  expect_death("handler_that_handles_not", "the handler that was found does not handle the exception" + k_at_jit_frame);
  expect_death("broken_description", "jitunwind: exception cannot pass" + k_at_jit_frame);
  expect_death("broken_description", "\\(jit_frame\\+0x12\\): memory cannot be read, saved register at 0x8");
  expect_death("own_caller", "jitunwind: ");
}

}  // namespace

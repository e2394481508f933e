// Compares the frames that other programs see in the same process, in our programs and in programs of this system. GDB
// is told of registered code and sees all frames; elfutils sees those of static code.
#include "tests/targets/witnesses.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace jitunwind::test {
namespace {

class Witnesses : public testing::TestWithParam<const char*> {};

// covers: HL07
TEST_P(Witnesses, OfOurPrograms) {
  ::setenv("JITUNWIND_ATTACH", "gdb", 1);
  const TargetProgram program(GetParam());
  ::unsetenv("JITUNWIND_ATTACH");
  std::map<pid_t, std::string> whys;
  const Stacks ours = by_us(program.process(), Guesses::confirmed, &whys);
  for (const auto& [thread, why] : whys) EXPECT_EQ(why, "complete") << thread;
  EXPECT_EQ(ours.size(), 3u);
  EXPECT_EQ(by_gdb(program.process()), ours);
  // elfutils sees the frames up to the first that was made at run time: pause(), stand_still(), and that one itself.
  for (const auto& [thread, pcs] : by_eu_stack(program.process())) {
    ASSERT_GE(pcs.size(), 3u) << thread;
    ASSERT_GE(ours.at(thread).size(), pcs.size()) << thread;
    EXPECT_TRUE(std::equal(pcs.begin(), pcs.begin() + 3, ours.at(thread).begin())) << thread;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Witnesses, testing::Values(TARGET_PROGRAMS));

struct SystemProgram {
  const char* name;
  const char* command;
};
std::ostream& operator<<(std::ostream& out, const SystemProgram& program) { return out << program.name; }

class ProgramsOfThisSystem : public testing::TestWithParam<SystemProgram> {};

/// All see the same static code, from the first to the last frame.
TEST_P(ProgramsOfThisSystem, AreSeenAsByGdbAndElfutils) {
  const Waiting program(GetParam().command);
  const SeenAtOnce seen = seen_when_it_waits(program.process(), WithGdb::yes, stands_still());
  EXPECT_EQ(seen.elfutils, seen.ours);
  EXPECT_EQ(seen.gdb, seen.ours);
  for (const auto& [thread, why] : seen.whys) EXPECT_EQ(why, "complete") << thread;
}

constexpr SystemProgram k_programs[] = {
    {"sleep", "sleep 100"},
    {"bash", "bash -c 'read -t 100 x'"},
    {"gdb", "gdb -nx -q -batch -ex 'shell sleep 100'"},
#ifdef HAS_PERL
    {"perl", "perl -e 'sleep 100'"},
#endif
#ifdef HAS_PYTHON3
    {"python3", "python3 -c 'import time\ndef f(n):\n  time.sleep(100) if n == 0 else f(n - 1)\nf(50)'"},
#endif
#ifdef HAS_HEXYL
    {"hexyl_of_Rust", "hexyl"},
#endif
};
INSTANTIATE_TEST_SUITE_P(Programs, ProgramsOfThisSystem, testing::ValuesIn(k_programs),
                         [](const auto& info) { return std::string(info.param.name); });

#ifdef HAS_FZF
constexpr int k_nop = 0x90;
int byte_at(pid_t process, Addr at) {
  std::ifstream memory("/proc/" + std::to_string(process) + "/mem", std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(at));
  return memory.get();
}

/// Debian's programs of Go have no symbols, and unwind information for their C code alone. GDB takes words of the
/// stack for frames, from the second frame of each thread on. elfutils follows frame pointers; it skips functions that
/// have made no frame, as bold guesses do. A walk with confirmed guesses has those functions, too, and reports where it
/// ends. A goroutine begins as if runtime.goexit had called it, and returns behind that function's first instruction, a
/// nop; no guess leads there.
TEST(ProgramOfGo, ShowsWhatFramePointersShow) {
  const Waiting program("fzf --filter x");
  const SeenAtOnce seen =
      seen_when_it_waits(program.process(), WithGdb::no, [](const Stacks& stacks) { return stacks.size() >= 3; });
  ASSERT_GE(seen.elfutils.size(), 3u);
  std::size_t confirmed = 0;
  for (const auto& [thread, theirs] : seen.elfutils) {
    ASSERT_TRUE(seen.ours.contains(thread) && seen.bold.contains(thread));
    const Pcs& ours = seen.ours.at(thread);
    ASSERT_FALSE(ours.empty());
    const bool ends_in_goexit = theirs.size() > 1 && byte_at(program.process(), theirs.back() - 1) == k_nop;
    EXPECT_TRUE(has_all_of(seen.bold.at(thread), std::span(theirs).first(theirs.size() - ends_in_goexit)))
        << testing::PrintToString(seen.bold.at(thread)) << testing::PrintToString(theirs);
    const auto last = std::ranges::find(theirs, ours.back());
    if (last != theirs.end()) {
      EXPECT_TRUE(has_all_of(ours, std::span(theirs.begin(), last + 1)))
          << testing::PrintToString(ours) << testing::PrintToString(theirs);
    }
    confirmed += last != theirs.end() && ours.size() > 1;
    EXPECT_TRUE(seen.whys.at(thread).find("caller cannot be confirmed") != std::string::npos) << seen.whys.at(thread);
  }
  EXPECT_GE(confirmed, 2u);
}
#endif

}  // namespace
}  // namespace jitunwind::test

// Tools of Debian that walk by libunwind 1.6, unmodified, on the drop-in libraries: they print what they print on that
// release or more, and those that walk their own process pass code made at run time.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/drop_in/tools.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

class Tools : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::string file() const { return folder / "out"; }

  /// heaptrack's list of what allocated.
  std::string allocations(const std::string& environment, const std::string& arguments) {
    const std::string to = "heaptrack -o '" + file() + "' '" ALLOCATING_PROGRAM "' " + arguments + " 2>&1";
    loaded = output_of("LD_DEBUG=files " + environment + to);
    // It packs by zstd or by gzip, as it was built.
    return output_of("heaptrack_print --print-allocators 1 -f '" + file() + "'.[gz]* 2>&1");
  }
  std::string loaded;
};

/// A line of its own, as frames have; paths may hold any word.
bool has_frame(const std::string& printed, const std::string& function) {
  return has_match(printed, Pattern("(^|\n) *" + function + " *\n"));
}

/// The allocations of a program, each with the whole stack that made it.
TEST_F(Tools, HeaptrackRunsOnIt) {
  for (const char* arguments : {"", "made"}) {
    const std::string ours = allocations(k_ours, arguments);
    EXPECT_TRUE(contains(loaded, "libjitunwind-libunwind.so.1"));
    for (const char* function : {"allocate_deep", "middle", "main"})
      EXPECT_TRUE(has_frame(ours, function)) << function << "\n" << ours;
  }
  const std::string theirs = allocations(k_theirs, "made");
  EXPECT_TRUE(has_frame(theirs, "middle")) << theirs;
  EXPECT_FALSE(has_frame(theirs, "main")) << "libunwind 1.6 passes it itself";
}

/// gperftools' processor profile: functions from the outermost to the running one, and the number of samples.
std::string profile(const std::string& environment, const std::string& file, const std::string& arguments) {
  const std::string program = "'" BUSY_PROGRAM "' ";
  const std::string printed =
      output_of(environment + "LD_PRELOAD=libprofiler.so.0 CPUPROFILE='" + file + "' " + program + arguments + " 2>&1");
  EXPECT_TRUE(contains(printed, "PROFILE: interrupts")) << printed;
  return output_of("google-pprof --collapsed " + program + "'" + file + "' 2>/dev/null");
}

/// Whether some line has both functions, the one before the other.
bool has_path(const std::string& stacks, const char* from, const char* to) {
  return has_match(stacks, Pattern(std::string(from) + "[^\n]*;" + to));
}

TEST_F(Tools, GperftoolsProfilesOnIt) {
  const std::string ours = profile(k_ours, file(), "made");
  EXPECT_TRUE(has_path(ours, "main", "calls_directly")) << ours;
  EXPECT_TRUE(has_path(ours, "calls_directly", "be_busy")) << ours;
  EXPECT_TRUE(has_path(ours, "calls_in_a_thread", "be_busy")) << ours;
  const std::string theirs = profile(k_theirs, file(), "made");
  EXPECT_TRUE(has_path(theirs, "main", "be_busy")) << theirs;
  EXPECT_FALSE(has_path(theirs, "calls_in_a_thread", "be_busy")) << "libunwind 1.6 passes it itself";
}

#ifdef PERF_PROGRAM
/// A sample as perf prints it: a line that says what and when, then its frames.
using Sample = std::vector<std::string>;
std::vector<Sample> samples_of(const std::string& script) {
  std::vector<Sample> samples(1);
  for (const std::string& line : lines_of(script)) {
    if (line.empty())
      samples.emplace_back();
    else
      samples.back().push_back(line);
  }
  if (samples.back().empty()) samples.pop_back();
  return samples;
}
bool reaches_main(const Sample& sample) {
  return std::any_of(sample.begin(), sample.end(), [](const std::string& line) { return contains(line, " main+"); });
}

/// perf asks by callbacks: memory of the recorded stack, registers of the sample, tables of the mapped files. Walks
/// that reach main are the same frame by frame. Others are of code that perf has no table of, at the start of a process
/// and around the kernel's vdso: libunwind 1.6 takes what lies at the frame pointer for a frame, whatever it is, and
/// prints one more.
TEST_F(Tools, PerfUnwindsOnIt) {
  const Ended recorded =
      run(PERF_PROGRAM " record -e cpu-clock:u -F 500 --call-graph dwarf -o '" + file() + "' '" BUSY_PROGRAM "'");
  ASSERT_EQ(recorded.status, 0) << recorded.text;
  const std::string script = PERF_PROGRAM " script -i '" + file() + "' 2>/dev/null";
  const std::string loaded =
      output_of("LD_DEBUG=files " + k_ours + "perf script -i '" + file() + "' 2>&1 | grep 'calling init'");
  EXPECT_TRUE(contains(loaded, "libjitunwind-libunwind.so.1")) << loaded;
  const auto ours = samples_of(output_of(k_ours + script));
  const auto theirs = samples_of(output_of(k_theirs + script));
  ASSERT_EQ(ours.size(), theirs.size());
  std::size_t in_main = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    in_main += reaches_main(ours[i]);
    if (ours[i] == theirs[i]) continue;
    ++others;
    EXPECT_FALSE(reaches_main(theirs[i])) << testing::PrintToString(ours[i]) << testing::PrintToString(theirs[i]);
    ASSERT_GE(ours[i].size(), 2u);
    EXPECT_EQ(ours[i][1], theirs[i][1]);
    EXPECT_LE(theirs[i].size(), ours[i].size() + 1) << testing::PrintToString(ours[i]);
  }
  EXPECT_GT(in_main, 10u);
  EXPECT_LE(others, 1 + ours.size() / 20);
}

#endif

/// Names of the frames that glog's failure handler printed.
std::vector<std::string> glog_frames(const std::string& environment) {
  const Ended died = run(environment + "'" CRASHING_PROGRAM "'");
  EXPECT_EQ(died.status, 128 + SIGILL) << died.text;
  std::vector<std::string> names;
  const Pattern frame("^ *@ +0x[0-9a-f]+ +(.*)$");
  for (const std::string& line : lines_of(died.text))
    if (Groups found; matches(line, found, frame)) names.push_back(found[1]);
  return names;
}

TEST_F(Tools, GlogPrintsMoreFramesOfACrash) {
  const auto ours = glog_frames(k_ours);
  const auto theirs = glog_frames(k_theirs);
  ASSERT_LT(theirs.size(), ours.size());
  // The rest of theirs is what libunwind 1.6 takes for the caller of code that it knows nothing of.
  const auto died = std::find(theirs.begin(), theirs.end(), "calls_dies");
  ASSERT_NE(died, theirs.end());
  EXPECT_TRUE(std::equal(theirs.begin(), died + 1, ours.begin()));
  EXPECT_NE(std::find(ours.begin(), ours.end(), "main"), ours.end());
  EXPECT_EQ(ours.back(), "_start");
}

struct CrashedFrame {
  std::string module;
  std::string name;  ///< "?": none
};

/// The frames that the X server prints of itself when a signal has killed it.
std::vector<CrashedFrame> xvfb_frames(bool on_ours, const std::string& file) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t server = ::fork();
  if (server == 0) {
    ::close(ready[0]);
    if (on_ours) ::setenv("LD_LIBRARY_PATH", DROP_IN_FOLDER, 1);
    if (!::freopen(file.c_str(), "w", stderr)) ::_exit(1);
    ::execlp("Xvfb", "Xvfb", "-displayfd", std::to_string(ready[1]).c_str(), "-nolisten", "tcp", "-screen", "0",
             "64x64x8", nullptr);
    ::_exit(127);
  }
  ::close(ready[1]);
  char number = 0;
  EXPECT_EQ(::read(ready[0], &number, 1), 1) << "the server did not start";
  EXPECT_TRUE(waits_in(server, {SYS_epoll_wait, SYS_epoll_pwait}));
  ::kill(server, SIGSEGV);
  ::waitpid(server, nullptr, 0);
  ::close(ready[0]);
  std::vector<CrashedFrame> frames;
  std::ifstream in(file);
  const Pattern frame(R"(\(EE\) \d+: (\S+) \((.*)\+0x[0-9a-f]+\) \[0x[0-9a-f]+\])");
  for (std::string line; std::getline(in, line);)
    if (Groups found; matches(line, found, frame)) frames.push_back({found[1], found[2]});
  return frames;
}

TEST_F(Tools, XvfbPrintsItsCrash) {
  const auto ours = xvfb_frames(true, file());
  const auto theirs = xvfb_frames(false, file());
  ASSERT_GE(ours.size(), theirs.size());
  ASSERT_GT(theirs.size(), 5u);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(ours[i].module, theirs[i].module) << i;
    EXPECT_TRUE(ours[i].name != "?" || theirs[i].name == "?") << i << ": " << theirs[i].name;
  }
}

}  // namespace
}  // namespace jitunwind::test

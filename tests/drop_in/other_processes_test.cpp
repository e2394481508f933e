// Tools of Debian that look at another process, or at what is left of one, with the drop-in libraries in their path:
// those that walk by libunwind 1.6's libunwind-ptrace.so.0 and libunwind-coredump.so.0, and those that have unwinders
// of their own.
#include <gtest/gtest.h>

#include <elf.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/drop_in/tools.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Frames = std::vector<std::string>;

/// Returns the pattern's group for every line that matches.
Frames frames_of(const std::string& printed, const char* pattern) {
  Frames frames;
  const Pattern frame(pattern);
  for (const std::string& line : lines_of(printed))
    if (Groups found; matches(line, found, frame)) frames.push_back(found[1]);
  return frames;
}

/// Stacks of the system calls that make room for the program's memory: modules, names, offsets, places in the files.
Frames strace_frames(const std::string& environment, const std::string& file, const std::string& argument = "",
                     const std::string& of_program = "-E LD_LIBRARY_PATH") {
  output_of(environment + "strace " + of_program + " -k -e trace=brk -o '" + file + "' '" ALLOCATING_PROGRAM "' " +
            argument);
  return frames_of(output_of("cat '" + file + "'"), " > (.*)");
}

/// "file [address]": that release knows no symbols of .gnu_debugdata, and takes names before it for them.
Frames places(const Frames& frames) {
  Frames places;
  for (const std::string& frame : frames) places.push_back(replaced(frame, Pattern(R"(\(.*\))"), ""));
  return places;
}

/// On our libunwind-ptrace.so.0 and libunwind-x86_64.so.8 as on Debian's.
// covers: HL15
TEST(OtherProcesses, StraceShowsStacks) {
  const TemporaryFolder folder;
  const std::string loaded = output_of(k_ours + "ldd -r `command -v strace` 2>&1");
  for (const char* library : {"libjitunwind-libunwind.so.1", "libjitunwind-ptrace.so.1"})
    EXPECT_TRUE(contains(loaded, library)) << loaded;
  EXPECT_FALSE(contains(loaded, "undefined symbol")) << loaded;
  const Frames ours = strace_frames(k_ours, folder / "ours");
  EXPECT_EQ(places(ours), places(strace_frames(k_theirs, folder / "theirs")));
  EXPECT_GT(ours.size(), 20u);
  std::string text;
  for (const std::string& frame : ours) text += frame + "\n";
  for (const char* function : {"(allocate_deep+", "(middle+", "(main+", "(_start+"})
    EXPECT_TRUE(contains(text, function)) << function << "\n" << text;
}

/// Frames of code that was made at run time have names, and those behind them are there. The program itself is on our
/// library, too: what it has registered is in the list that is found from outside.
// covers: HL07
TEST(OtherProcesses, StraceShowsCodeThatWasMadeAtRunTime) {
  const TemporaryFolder folder;
  std::string text;
  for (const std::string& frame : strace_frames(k_ours, folder / "ours", "below_made_code", ""))
    text += frame.substr(0, frame.find('+')) + "\n";
  const Pattern expected(R"(_allocating\(allocate_deep\n[^]*_allocating\(middle\n)"
                         R"(/memfd:made_code \(deleted\)\(made_at_run_time\n[^\n]*_allocating\(main\n)");
  EXPECT_TRUE(has_match(text, expected)) << text;
  // Debian's own stops there.
  std::string theirs;
  for (const std::string& frame : strace_frames(k_theirs, folder / "theirs", "below_made_code", ""))
    theirs += frame + "\n";
  EXPECT_FALSE(contains(theirs, "made_at_run_time")) << theirs;
}

/// gdb has its own unwinder; the program that it runs is on the drop-in libraries.
TEST(OtherProcesses, GdbRunsPrograms) {
  const std::string printed = output_of(
      k_ours + "gdb -q -batch -nx -ex 'break be_busy' -ex run -ex backtrace -ex 'info sharedlibrary' '" BUSY_PROGRAM
               "' 2>&1");
  EXPECT_EQ(frames_of(printed, "#\\d+ +0x[0-9a-f]+ in (\\w+) .*"), (Frames{"be_busy", "calls_directly", "main"}))
      << printed;
  EXPECT_TRUE(contains(printed, "libjitunwind-libunwind.so.1")) << printed;
}

Frames eu_stack_frames(const std::string& environment) {
  const pid_t sleeper = ::fork();
  if (sleeper == 0) {
    ::execlp("sh", "sh", "-c", (environment + "exec sleep 100").c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(waits_in(sleeper, {SYS_clock_nanosleep, SYS_nanosleep}));
  const std::string printed = output_of(environment + "eu-stack -p " + std::to_string(sleeper));
  ::kill(sleeper, SIGKILL);
  ::waitpid(sleeper, nullptr, 0);
  return frames_of(printed, "#\\d+ +0x[0-9a-f]+ *(.*)");
}

TEST(OtherProcesses, EuStackShowsStacks) {
  const Frames ours = eu_stack_frames(k_ours);
  EXPECT_GE(ours.size(), 4u);
  EXPECT_EQ(ours, eu_stack_frames(k_theirs));
}

/// gdb lays the segments of a core file out without gaps; libunwind-coredump.so.0 maps them, as it can the kernel's.
void align_segments(const std::string& file) {
  std::string core = text_of_file(file);
  Elf64_Ehdr header;
  ASSERT_GT(core.size(), sizeof header);
  std::memcpy(&header, core.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, &core[at], sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    const std::size_t to = (core.size() + 4095) / 4096 * 4096;
    core.resize(to + segment.p_filesz);
    std::memcpy(&core[to], &core[segment.p_offset], segment.p_filesz);
    segment.p_offset = to;
    std::memcpy(&core[at], &segment, sizeof segment);
  }
  std::ofstream(file, std::ios::binary).write(core.data(), static_cast<std::streamsize>(core.size()));
}

/// Debian's libunwind-coredump.so.0 on our libunwind-x86_64.so.8.
TEST(OtherProcesses, CoreFilesAreWalked) {
  const TemporaryFolder folder;
  const std::string core = folder / "core";
  output_of(
      "gdb -q -batch -nx -ex 'set use-coredump-filter off' -ex 'set dump-excluded-mappings on' -ex 'break be_busy' "
      "-ex run -ex 'generate-core-file " +
      core + "' '" BUSY_PROGRAM "' 2>&1");
  ASSERT_NO_FATAL_FAILURE(align_segments(core));
  const std::string program = "'" CORE_PROGRAM "' '" + core + "'";
  // Behind main is code whose segment does not begin with an ELF header.
  const Frames expected{"be_busy", "calls_directly", "main"};
  for (const std::string& environment : {k_theirs, "LD_BIND_NOW=1 " + k_ours}) {
    const Frames frames = lines_of(output_of(environment + program));
    ASSERT_GE(frames.size(), expected.size()) << environment;
    EXPECT_EQ(Frames(frames.begin(), frames.begin() + 3), expected) << environment;
  }
}

}  // namespace
}  // namespace jitunwind::test

// Programs that know nothing of this library run on the drop-in libraries.
#include <gtest/gtest.h>

#include <unistd.h>

#include <set>
#include <string>

#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

const std::string k_path = "LD_LIBRARY_PATH='" DROP_IN_FOLDER "' ";

// covers: LU25
TEST(DropIn, ProgramsOfRelease16SeeCodeMadeAtRunTime) {
  EXPECT_EQ(output_of(WALKING_PROGRAM).find("main"), std::string::npos) << "libunwind 1.6 passes it itself";
  EXPECT_EQ(output_of(k_path + WALKING_PROGRAM " twice"),
            "walk\nmade_at_run_time\nmain\nsame lists\nbacktrace of libunwind.so.8\n");
}

/// The program is linked with Debian's library: nothing of ours is in it.
TEST(DropIn, TheProgramNeedsLibunwindAlone) {
  const std::string needed = output_of("readelf -dW '" WALKING_PROGRAM "' | grep NEEDED");
  EXPECT_NE(needed.find("[libunwind.so.8]"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("jitunwind"), std::string::npos) << needed;
  const std::string loaded = output_of(k_path + "ldd '" WALKING_PROGRAM "'");
  EXPECT_NE(loaded.find("libjitunwind-libunwind.so.1"), std::string::npos) << loaded;
}

std::set<std::string> names_of(const std::string& libraries) {
  std::set<std::string> names;
  for (const std::string& line : lines_of(output_of("nm -D --defined-only --format=posix " + libraries)))
    if (line.find(' ') != std::string::npos) names.insert(line.substr(0, line.find_first_of(" @")));
  return names;
}

/// Debian's libraries of the same names export nothing that these lack, except for the exception ABI, which libgcc_s
/// has. Debian's libunwind-ptrace.so.0 and libunwind-coredump.so.0 find all names that they import.
TEST(DropIn, NamesOfDebiansLibrariesAreThere) {
  const std::set<std::string> ours =
      names_of("'" DROP_IN_FOLDER "/libunwind.so.8' '" DROP_IN_FOLDER "/libunwind-x86_64.so.8' '" LIBUNWIND_SHARED "'");
  const std::set<std::string> theirs = names_of("'" DEBIANS_LIBUNWIND "' '" DEBIANS_LIBUNWIND_GENERIC "'");
  EXPECT_GT(theirs.size(), 60u);  // 1.8 has 71
  for (const std::string& name : theirs) {
    if (name == "_Unwind_GetBSP" || name.rfind("_Unwind_", 0) != 0)
      EXPECT_TRUE(ours.contains(name)) << name;
    else
      EXPECT_FALSE(ours.contains(name)) << "exceptions stay with libgcc_s: " << name;
  }
  const std::string backtrace = output_of("nm -D '" DROP_IN_FOLDER "/libunwind.so.8' | grep ' backtrace$'");
  EXPECT_NE(backtrace.find(" W "), std::string::npos) << backtrace;
}

/// A third function, with sizes of frames, was asked for and never defined by anybody: a name without a meaning would
/// only make programs link that cannot work elsewhere.
// covers: LU26
TEST(DropIn, BacktraceFunctionsAreThoseThatLibunwindDefines) {
  std::set<std::string> found;
  for (const std::string& name : names_of("'" DROP_IN_FOLDER "/libunwind.so.8' '" LIBUNWIND_SHARED "'"))
    if (name.find("backtrace") != std::string::npos && name.rfind("_", 0) != 0) found.insert(name);
  // The last two are the C library's, which names what they list.
  EXPECT_EQ(found, (std::set<std::string>{"backtrace", "unw_backtrace", "unw_backtrace2", "backtrace_symbols",
                                          "backtrace_symbols_fd"}));
}

/// The C library's functions give names to code made at run time, under all versions that programs import. So they do
/// if only the listening library comes first, which has the same versions.
TEST(DropIn, FunctionsOfTheCLibraryNameCodeMadeAtRunTime) {
  const std::string alone = output_of(NAMING_PROGRAM);
  EXPECT_EQ(alone.substr(0, 12), "?\n?\n?\n?\nputs") << alone;
  const std::string listen = "LD_PRELOAD='" LISTEN_SHARED "' ";
  for (const std::string& with : {k_path, k_path + listen}) {
    const std::string named = output_of(with + NAMING_PROGRAM);
    EXPECT_EQ(named.rfind("made_at_run_time\nmade_at_run_time\nmade_at_run_time\nmade_at_run_time\nputs\n", 0), 0u)
        << named;
    EXPECT_NE(named.find("\n[jit](made_at_run_time+0x"), std::string::npos) << named;
    EXPECT_NE(named.find(") [0x", named.find("\n[jit](made_at_run_time+0x")), std::string::npos) << named;
  }
  const std::string bound = output_of(
      k_path + listen + "LD_DEBUG=bindings " NAMING_PROGRAM " 2>&1 | grep '" NAMING_PROGRAM ".* to .*dladdr'");
  EXPECT_EQ(lines_of(bound).size(), 4u) << bound;
  for (const std::string& line : lines_of(bound)) EXPECT_NE(line.find("libjitunwind-listen.so"), line.npos) << line;
}

// covers: HL13
TEST(DropIn, JumpsAreThoseOfTheCLibrary) {
  const std::string expected = output_of(SETJMP_PROGRAM);
  EXPECT_NE(expected.find("jumped with 0: 1, registers kept\n"), std::string::npos) << expected;
  const std::string preload = "LD_PRELOAD='" DROP_IN_FOLDER "/libunwind-setjmp.so.0' ";
  EXPECT_EQ(output_of(k_path + preload + SETJMP_PROGRAM), expected);
  const std::string bound = output_of(k_path + preload + "LD_DEBUG=bindings " SETJMP_PROGRAM " 2>&1 | grep longjmp");
  EXPECT_NE(bound.find("libunwind-setjmp.so.0"), std::string::npos) << bound;
}

/// Cleanups of C are found by buffers that the C library's __sigsetjmp() has set, for itself.
// covers: HL13
TEST(DropIn, CleanupsOfCAreRun) {
  const std::string expected = output_of(CLEANUP_PROGRAM);
  EXPECT_EQ(expected, "cleaned up: cancelled\ncancelled\ncleaned up: ended\nended\njumped\n");
  EXPECT_EQ(output_of(k_path + "LD_PRELOAD='" DROP_IN_FOLDER "/libunwind-setjmp.so.0' " CLEANUP_PROGRAM), expected);
}

TEST(DropIn, JumpsByBuffersThatWereNotSetEndTheProgram) {
  const std::string preload = "LD_PRELOAD='" DROP_IN_FOLDER "/libunwind-setjmp.so.0' ";
  const std::string said = output_of("{ " + k_path + preload + SETJMP_PROGRAM " garbage; echo \"status $?\"; } 2>&1");
  EXPECT_NE(said.find("jitunwind: longjmp: the buffer was never set\n"), std::string::npos) << said;
  EXPECT_NE(said.find("status 134"), std::string::npos) << said;
}

/// The exception ABI is libgcc_s's, whose functions the C library names itself. libunwind 1.6 has functions of the same
/// names, which cannot read that one's contexts: there the program crashes.
TEST(DropIn, ThreadsEndAsTheyDoWithoutLibunwind) {
  EXPECT_EQ(output_of(k_path + THREAD_EXIT_PROGRAM),
            "destructor of the function that called pthread_exit\ndestructor of the thread\nended\n"
            "destructor of the function that was cancelled\ndestructor of the thread\ncancelled\n");
}

/// Programs rely on two properties: "a signal frame" is the interrupted one, and code without a symbol has the name of
/// the preceding symbol.
TEST(DropIn, FramesAreWhatProgramsOfRelease16Expect) {
  auto theirs = lines_of(output_of(FRAMES_PROGRAM));
  const auto ours = lines_of(output_of(k_path + FRAMES_PROGRAM));
  ASSERT_EQ(theirs.size(), 8u);
  ASSERT_EQ(ours.size(), 8u);
  // Release 1.8 gives code without a symbol no name.
  if (theirs[3].starts_with("+0,")) theirs[3] = ours[3];
  EXPECT_EQ(ours, theirs);
  EXPECT_EQ(theirs[1], "C library, signal frame 0") << "the trampoline";
  EXPECT_EQ(theirs[2], "faults+0, signal frame 1, in faults");
  EXPECT_EQ(theirs[3].rfind("stripped_before+", 0), 0u) << theirs[3];
  EXPECT_EQ(theirs[7].rfind("faults+0, signal frame 0, ", 0), 0u) << theirs[7];
}

TEST(DropIn, DescriptorThatTwoThreadsRegisterAtOnceIsRegisteredOnce) {
  EXPECT_EQ(output_of(k_path + REGISTERING_PROGRAM), "0 times not registered once\n0 listed in the end\n");
}

#ifdef OTHERS_PROGRAM
/// Numbers are those of DWARF 5, 7.6, figures C.1 and C.2 among them.
TEST(DropIn, TheOtherFunctionsAreThoseOfLibunwind) {
  const std::string expected = output_of(OTHERS_PROGRAM);
  EXPECT_NE(expected.find("3 3: 98765 624485\n"), std::string::npos) << expected;
  EXPECT_EQ(output_of(k_path + OTHERS_PROGRAM), expected);
  EXPECT_EQ(output_of(k_path + OTHERS_PROGRAM " go"), expected + "here 1\nhere 2\nhere 3\n");
}

/// libunwind's own names of its functions lead to libgcc_s, whose contexts the personality routines get there.
TEST(DropIn, OtherNamesOfTheExceptionAbiThrowAsOnLibunwind) {
  const std::string expected = output_of(EXCEPTION_PROGRAM);
  EXPECT_EQ(expected, "walked 5\nmain\ndestructor\ncaught\ncleaned up\n");
  EXPECT_EQ(output_of(k_path + EXCEPTION_PROGRAM), expected);
}
#endif

}  // namespace
}  // namespace jitunwind::test
